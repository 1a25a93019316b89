package plan

import (
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
