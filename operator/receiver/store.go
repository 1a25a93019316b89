package receiver

import (
	"bytes"
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

// delivered is a valid result of an authorized Pod.
type delivered struct {
	claimed identity.Identity
	account string
	found   *authority
	digest  string
	body    []byte
}

// store writes the result and returns its complete record. Written again with the same bytes it returns the same
// record; with other bytes it is a conflict.
func (s *Server) store(ctx context.Context, d delivered) (*v1alpha1.PtahResultRecord, *refusal) {
	complete := manifest{Version: manifestVersion, Identity: d.claimed, Digest: d.digest, Size: int64(len(d.body))}
	publication := delivery.Publication(d.claimed)
	if len(d.body) <= maxInlineBytes {
		complete.Inline = d.body
		return s.putManifest(ctx, d, completeName(publication), v1alpha1.ResultComplete, complete)
	}
	chunks, pieces := split(publication, d.body)
	complete.Chunks = chunks
	intent, refused := s.putManifest(ctx, d, intentName(publication), v1alpha1.ResultIntent, complete)
	if refused != nil {
		return nil, refused
	}
	// A completed result is never written again: a chunk that is missing by now stays missing.
	if done, refused := s.completed(ctx, d, publication); done != nil || refused != nil {
		return done, refused
	}
	for i := range chunks {
		record := newRecord(chunks[i].Name, v1alpha1.ResultChunk, pieces[i], d.claimed, d.found.job)
		stored, refused := s.put(ctx, record)
		if refused != nil {
			return nil, refused
		}
		chunks[i].UID = string(stored.UID)
	}
	complete.Intent = &part{
		Name:   intent.Name,
		UID:    string(intent.UID),
		Digest: report.Digest(intent.Spec.Data),
		Size:   int64(len(intent.Spec.Data)),
	}
	// Writing chunks takes a while: the claim must still be there at the moment the result begins to count.
	if d.found, refused = s.authorize(ctx, d.claimed, d.account); refused != nil {
		return nil, refused
	}
	return s.putManifest(ctx, d, completeName(publication), v1alpha1.ResultComplete, complete)
}

func split(publication string, body []byte) (parts []part, pieces [][]byte) {
	for len(body) > 0 {
		piece := body[:min(len(body), v1alpha1.MaxChunkBytes)]
		body = body[len(piece):]
		parts = append(parts, part{Name: chunkName(publication, len(parts)), Digest: report.Digest(piece), Size: int64(len(piece))})
		pieces = append(pieces, piece)
	}
	return parts, pieces
}

func (s *Server) putManifest(ctx context.Context, d delivered, name string, kind v1alpha1.ResultRecordType, m manifest) (*v1alpha1.PtahResultRecord, *refusal) {
	data, err := encodeManifest(m)
	if err != nil {
		s.logger.Error(err, "Manifest could not be written")
		return nil, refuse(http.StatusInternalServerError, "the record could not be written")
	}
	return s.put(ctx, newRecord(name, kind, data, d.claimed, d.found.job))
}

// completed returns the complete record of a chunked result that was stored before.
func (s *Server) completed(ctx context.Context, d delivered, publication string) (*v1alpha1.PtahResultRecord, *refusal) {
	var stored v1alpha1.PtahResultRecord
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: d.claimed.Namespace, Name: completeName(publication)}, &stored)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.unknown(err)
	}
	m, err := decodeManifest(stored.Spec.Data)
	if err != nil || m.Digest != d.digest || m.Identity != d.claimed {
		return nil, refuse(http.StatusConflict, "another result is stored for this operation")
	}
	return &stored, nil
}

// put creates a record, or finds the one that an earlier attempt left with the same bytes.
func (s *Server) put(ctx context.Context, record *v1alpha1.PtahResultRecord) (*v1alpha1.PtahResultRecord, *refusal) {
	want := record.Spec
	err := s.client.Create(ctx, record)
	if err == nil {
		return record, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil, refuse(http.StatusForbidden, "the namespace is being deleted and takes no result any more")
		}
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			s.logger.Error(err, "Record refused by the API server", "name", record.Name)
			return nil, refuse(http.StatusServiceUnavailable, "the API server refused to store the record")
		}
		return nil, s.unknown(err)
	}
	var stored v1alpha1.PtahResultRecord
	if err := s.reader.Get(ctx, client.ObjectKeyFromObject(record), &stored); err != nil {
		return nil, s.unknown(err)
	}
	if stored.Spec.Type != want.Type || !bytes.Equal(stored.Spec.Data, want.Data) {
		return nil, refuse(http.StatusConflict, "another result is stored for this operation")
	}
	return &stored, nil
}

func (s *Server) unknown(err error) *refusal {
	s.logger.Error(err, "Record could not be stored")
	return refuse(http.StatusServiceUnavailable, "the record could not be stored; try again")
}
