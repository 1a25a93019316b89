package plan

import (
	"bytes"
	"fmt"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan/report"
)

// Split cuts the bytes of a plan into chunks of at most v1alpha1.MaxChunkBytes, in order. A boundary is a byte
// position. It refuses an empty plan and one that is larger than v1alpha1.MaxPlanBytes.
func Split(data []byte) ([][]byte, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("split plan: the plan is empty")
	}
	if len(data) > ptahv1.MaxPlanBytes {
		return nil, fmt.Errorf("split plan: %d bytes are more than the limit of %d", len(data), ptahv1.MaxPlanBytes)
	}
	var chunks [][]byte
	for start := 0; start < len(data); start += ptahv1.MaxChunkBytes {
		chunks = append(chunks, data[start:min(start+ptahv1.MaxChunkBytes, len(data))])
	}
	return chunks, nil
}

// References describes chunks as a plan names them.
func References(planName string, chunks [][]byte) []ptahv1.PlanChunkReference {
	references := make([]ptahv1.PlanChunkReference, 0, len(chunks))
	for i, chunk := range chunks {
		references = append(references, ptahv1.PlanChunkReference{
			Name:   ChunkName(planName, i),
			Index:  int32(i),
			Digest: ptahv1.Digest(report.Digest(chunk)),
			Size:   int64(len(chunk)),
		})
	}
	return references
}

// join puts chunks together and checks each against its reference, and the whole against size and digest.
func join(spec *ptahv1.PtahSchemaPlanSpec, chunks [][]byte) ([]byte, error) {
	if len(chunks) != len(spec.Chunks) {
		return nil, fmt.Errorf("%d chunks instead of %d", len(chunks), len(spec.Chunks))
	}
	var whole bytes.Buffer
	for i, reference := range spec.Chunks {
		if int(reference.Index) != i {
			return nil, fmt.Errorf("chunk %d has index %d", i, reference.Index)
		}
		if int64(len(chunks[i])) != reference.Size || report.Digest(chunks[i]) != string(reference.Digest) {
			return nil, fmt.Errorf("the bytes of chunk %s are not those that the plan names", reference.Name)
		}
		whole.Write(chunks[i])
	}
	if int64(whole.Len()) != spec.Size || report.Digest(whole.Bytes()) != string(spec.ContentDigest) {
		return nil, fmt.Errorf("the chunks together are not the bytes that the plan names")
	}
	return whole.Bytes(), nil
}
