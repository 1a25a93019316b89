package receiver

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

// Identity is who an operation Pod claims to be.
type Identity = identity.Identity

// Publication names the one result that a Job can deliver.
func Publication(resourceUID, operationID, jobUID string) string {
	return identity.Publication(resourceUID, operationID, jobUID)
}

// ErrNoResult says that no complete record exists. A result that is half stored is none.
var ErrNoResult = errors.New("no complete result is stored")

// InvalidResultError says that a complete record exists, and that what it names is missing or differs.
type InvalidResultError struct {
	Publication string
	Reason      string
}

func (e *InvalidResultError) Error() string {
	return fmt.Sprintf("result %s is not usable: %s", e.Publication, e.Reason)
}

// Load reads a result and verifies all of it: names, UIDs, order, sizes, digests, identity and document. It costs one
// request for a result of at most 256 KiB, otherwise two and one per 512 KiB. The error is ErrNoResult, an
// *InvalidResultError, or that of a read.
func Load(ctx context.Context, reader client.Reader, namespace, publication string) (*result.Document, error) {
	document, _, err := LoadWithIdentity(ctx, reader, namespace, publication)
	return document, err
}

// LoadWithIdentity does what Load does, and says which Pod delivered the result.
func LoadWithIdentity(ctx context.Context, reader client.Reader, namespace, publication string) (*result.Document, Identity, error) {
	l := loader{ctx: ctx, reader: reader, namespace: namespace, publication: publication}
	complete, err := l.record(completeName(publication), v1alpha1.ResultComplete)
	if apierrors.IsNotFound(err) {
		return nil, Identity{}, ErrNoResult
	}
	if err != nil {
		return nil, Identity{}, err
	}
	m, err := decodeManifest(complete.Spec.Data)
	if err != nil {
		return nil, Identity{}, l.invalid("the complete record: %v", err)
	}
	if delivery.Publication(m.Identity) != publication || m.Identity.Namespace != namespace {
		return nil, Identity{}, l.invalid("the complete record belongs to another operation")
	}
	document, err := l.document(m)
	return document, m.Identity, err
}

// document reads the bytes that a complete record holds or names.
func (l *loader) document(m *manifest) (*result.Document, error) {
	body := m.Inline
	var err error
	if len(body) == 0 {
		if body, err = l.chunks(m); err != nil {
			return nil, err
		}
	}
	if int64(len(body)) != m.Size || report.Digest(body) != m.Digest {
		return nil, l.invalid("the bytes do not have the size and digest of the complete record")
	}
	document, err := result.Decode(body)
	if err != nil {
		return nil, l.invalid("%v", err)
	}
	if document.OperationID != m.Identity.OperationID || document.Operation != m.Identity.Operation {
		return nil, l.invalid("the document is of another operation than its record")
	}
	return document, nil
}

type loader struct {
	ctx         context.Context
	reader      client.Reader
	namespace   string
	publication string
}

func (l *loader) invalid(format string, arguments ...any) error {
	return &InvalidResultError{Publication: l.publication, Reason: fmt.Sprintf(format, arguments...)}
}

func (l *loader) record(name string, kind v1alpha1.ResultRecordType) (*v1alpha1.PtahResultRecord, error) {
	var record v1alpha1.PtahResultRecord
	if err := l.reader.Get(l.ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, &record); err != nil {
		return nil, fmt.Errorf("read result record %s: %w", name, err)
	}
	if record.Spec.Type != kind {
		return nil, l.invalid("record %s is of type %s, not %s", name, record.Spec.Type, kind)
	}
	return &record, nil
}

// named reads a record that a complete record names, and nothing that only has its name.
func (l *loader) named(name string, kind v1alpha1.ResultRecordType, want part) ([]byte, error) {
	if want.Name != name {
		return nil, l.invalid("the complete record names %q where %q stands", want.Name, name)
	}
	record, err := l.record(name, kind)
	if apierrors.IsNotFound(err) {
		return nil, l.invalid("record %s is missing", name)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case string(record.UID) != want.UID:
		return nil, l.invalid("record %s was created anew", name)
	case int64(len(record.Spec.Data)) != want.Size || report.Digest(record.Spec.Data) != want.Digest:
		return nil, l.invalid("record %s does not have its size and digest", name)
	}
	return record.Spec.Data, nil
}

func (l *loader) chunks(m *manifest) ([]byte, error) {
	if m.Intent == nil || len(m.Chunks) == 0 || m.Size > result.MaxBytes {
		return nil, l.invalid("the complete record names no chunks")
	}
	data, err := l.named(intentName(l.publication), v1alpha1.ResultIntent, *m.Intent)
	if err != nil {
		return nil, err
	}
	intent, err := decodeManifest(data)
	if err != nil {
		return nil, l.invalid("the intent record: %v", err)
	}
	if intent.Digest != m.Digest || intent.Identity != m.Identity || len(intent.Chunks) != len(m.Chunks) {
		return nil, l.invalid("the intent record is of another result than the complete record")
	}
	body := make([]byte, 0, m.Size)
	for i, chunk := range m.Chunks {
		if int64(len(body))+chunk.Size > m.Size {
			return nil, l.invalid("the chunks are larger than the result")
		}
		piece, err := l.named(chunkName(l.publication, i), v1alpha1.ResultChunk, chunk)
		if err != nil {
			return nil, err
		}
		body = append(body, piece...)
	}
	return body, nil
}
