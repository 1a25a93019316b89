package plan

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan/report"
)

// ErrAltered says that a stored plan or chunk is not what it must be. Nothing that depends on it may run.
var ErrAltered = errors.New("the stored plan is not intact")

// Store publishes plans. Writer creates and updates status; Reader must not be a cache.
type Store struct {
	Writer client.Client
	Reader client.Reader
}

// Publish stores a plan for owner: the manifest, then its chunks, then Ready in its status. spec needs everything but
// fingerprint, size, content digest, contract version and chunks, which are computed here. It is idempotent: objects
// of these deterministic names are adopted when they are exactly equal, and refused with ErrAltered when not. A plan
// with one chunk takes three requests, one that is already published takes one read more per object.
func (s Store) Publish(ctx context.Context, owner *ptahv1.PtahSchema, spec ptahv1.PtahSchemaPlanSpec, data []byte) (*ptahv1.PtahSchemaPlan, error) {
	chunks, err := Split(data)
	if err != nil {
		return nil, err
	}
	spec.ContractVersion = ptahv1.PlanContractVersion
	spec.SchemaRef = ptahv1.ImmutableObjectReference{Name: owner.Name, UID: string(owner.UID)}
	spec.ContentDigest = ptahv1.Digest(report.Digest(data))
	spec.Size = int64(len(data))
	fingerprint, err := Fingerprint(spec)
	if err != nil {
		return nil, err
	}
	spec.Fingerprint = ptahv1.Digest(fingerprint)
	spec.Chunks = References(Name(fingerprint), chunks)

	manifest, err := s.publishManifest(ctx, owner, spec)
	if err != nil {
		return nil, err
	}
	published := make([]ptahv1.PublishedChunk, 0, len(chunks))
	for i, chunk := range chunks {
		stored, err := s.publishChunk(ctx, owner, manifest, i, chunk)
		if err != nil {
			return nil, err
		}
		published = append(published, ptahv1.PublishedChunk{Name: stored.Name, UID: string(stored.UID), Index: int32(i)})
	}
	return manifest, s.markReady(ctx, manifest, published)
}

func (s Store) publishManifest(ctx context.Context, owner *ptahv1.PtahSchema, spec ptahv1.PtahSchemaPlanSpec) (*ptahv1.PtahSchemaPlan, error) {
	manifest := &ptahv1.PtahSchemaPlan{
		ObjectMeta: metav1.ObjectMeta{
			Name:      Name(string(spec.Fingerprint)),
			Namespace: owner.Namespace,
			Labels:    map[string]string{ptahv1.LabelManagedBy: ptahv1.ManagedByValue, ptahv1.LabelSchema: owner.Name},
		},
		Spec: spec,
	}
	if err := controllerutil.SetControllerReference(owner, manifest, s.Writer.Scheme()); err != nil {
		return nil, fmt.Errorf("publish plan %s: %w", manifest.Name, err)
	}
	err := s.Writer.Create(ctx, manifest)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return nil, fmt.Errorf("publish plan %s: %w", manifest.Name, err)
		}
		return manifest, nil
	}
	stored := &ptahv1.PtahSchemaPlan{}
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(manifest), stored); err != nil {
		return nil, fmt.Errorf("publish plan %s: read the existing one: %w", manifest.Name, err)
	}
	// Who created it binds nothing, so that a newer manager of the same epoch adopts it.
	spec.CreatedBy = stored.Spec.CreatedBy
	if !metav1.IsControlledBy(stored, owner) || !apiequality.Semantic.DeepEqual(stored.Spec, spec) {
		return nil, fmt.Errorf("publish plan %s: another object has its name: %w", manifest.Name, ErrAltered)
	}
	return stored, nil
}

func (s Store) publishChunk(ctx context.Context, owner *ptahv1.PtahSchema, manifest *ptahv1.PtahSchemaPlan, index int, data []byte) (*ptahv1.PtahSchemaPlanChunk, error) {
	chunk := &ptahv1.PtahSchemaPlanChunk{
		ObjectMeta: metav1.ObjectMeta{
			Name:      ChunkName(manifest.Name, index),
			Namespace: manifest.Namespace,
			Labels:    map[string]string{ptahv1.LabelPlan: manifest.Name, ptahv1.LabelSchema: owner.Name},
		},
		Spec: ptahv1.PtahSchemaPlanChunkSpec{Data: data},
	}
	if err := controllerutil.SetControllerReference(manifest, chunk, s.Writer.Scheme()); err != nil {
		return nil, fmt.Errorf("publish plan chunk %s: %w", chunk.Name, err)
	}
	err := s.Writer.Create(ctx, chunk)
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return nil, fmt.Errorf("publish plan chunk %s: %w", chunk.Name, err)
		}
		return chunk, nil
	}
	stored := &ptahv1.PtahSchemaPlanChunk{}
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(chunk), stored); err != nil {
		return nil, fmt.Errorf("publish plan chunk %s: read the existing one: %w", chunk.Name, err)
	}
	if !metav1.IsControlledBy(stored, manifest) || report.Digest(stored.Spec.Data) != report.Digest(data) {
		return nil, fmt.Errorf("publish plan chunk %s: another object has its name: %w", chunk.Name, ErrAltered)
	}
	return stored, nil
}

func (s Store) markReady(ctx context.Context, manifest *ptahv1.PtahSchemaPlan, published []ptahv1.PublishedChunk) error {
	if meta.IsStatusConditionTrue(manifest.Status.Conditions, ptahv1.ConditionReady) &&
		apiequality.Semantic.DeepEqual(manifest.Status.PublishedChunks, published) {
		return nil
	}
	manifest.Status.ObservedGeneration = manifest.Generation
	manifest.Status.PublishedChunks = published
	meta.SetStatusCondition(&manifest.Status.Conditions, metav1.Condition{
		Type: ptahv1.ConditionReady, Status: metav1.ConditionTrue, Reason: string(ptahv1.ReasonPublished),
		Message: "All chunks of the plan are stored.", ObservedGeneration: manifest.Generation,
	})
	if err := s.Writer.Status().Update(ctx, manifest); err != nil {
		return fmt.Errorf("publish plan %s: mark it stored: %w", manifest.Name, err)
	}
	return nil
}

// Read returns the plan that reference names, and its exact bytes, after it checked name, UID, readiness, fingerprint,
// and of every chunk the UID, owner, size and digest. Anything that does not hold is ErrAltered; a missing object is
// the API server's own not-found error. reader must not be a cache. It takes one request and one per chunk.
func Read(ctx context.Context, reader client.Reader, namespace string, reference ptahv1.ImmutableObjectReference) (*ptahv1.PtahSchemaPlan, []byte, error) {
	manifest, err := Open(ctx, reader, namespace, reference)
	if err != nil {
		return nil, nil, err
	}
	whole := bytes.NewBuffer(make([]byte, 0, manifest.Spec.Size))
	if err := Copy(ctx, reader, manifest, whole); err != nil {
		return nil, nil, err
	}
	return manifest, whole.Bytes(), nil
}

// Open returns the plan that reference names after Check, without its bytes. It takes one request.
func Open(ctx context.Context, reader client.Reader, namespace string, reference ptahv1.ImmutableObjectReference) (*ptahv1.PtahSchemaPlan, error) {
	manifest := &ptahv1.PtahSchemaPlan{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, manifest); err != nil {
		return nil, fmt.Errorf("read plan %s: %w", reference.Name, err)
	}
	if err := Check(manifest, reference); err != nil {
		return nil, fmt.Errorf("read plan %s: %w", reference.Name, err)
	}
	return manifest, nil
}

// Copy writes the bytes of a plan that Open returned, and holds one chunk at a time. Each chunk is checked before it is
// written, and the whole at the end: nothing that was written counts before Copy returned nil. It takes one request
// per chunk.
func Copy(ctx context.Context, reader client.Reader, manifest *ptahv1.PtahSchemaPlan, to io.Writer) error {
	whole, size := sha256.New(), int64(0)
	for i, reference := range manifest.Spec.Chunks {
		data, err := readChunk(ctx, reader, manifest, i)
		if err != nil {
			return fmt.Errorf("read plan %s: chunk %s: %w", manifest.Name, reference.Name, err)
		}
		if _, err := io.MultiWriter(whole, to).Write(data); err != nil {
			return fmt.Errorf("read plan %s: %w", manifest.Name, err)
		}
		size += int64(len(data))
	}
	if size != manifest.Spec.Size || report.DigestOf(whole) != string(manifest.Spec.ContentDigest) {
		return fmt.Errorf("read plan %s: its chunks together are not the bytes that it names: %w", manifest.Name, ErrAltered)
	}
	return nil
}

// readChunk returns the bytes of one chunk after it checked all that is known of it.
func readChunk(ctx context.Context, reader client.Reader, manifest *ptahv1.PtahSchemaPlan, index int) ([]byte, error) {
	reference, published := manifest.Spec.Chunks[index], manifest.Status.PublishedChunks[index]
	chunk := &ptahv1.PtahSchemaPlanChunk{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: manifest.Namespace, Name: published.Name}, chunk); err != nil {
		return nil, err
	}
	switch data := chunk.Spec.Data; {
	case string(chunk.UID) != published.UID || !metav1.IsControlledBy(chunk, manifest):
		return nil, fmt.Errorf("it was replaced: %w", ErrAltered)
	case int64(len(data)) != reference.Size || report.Digest(data) != string(reference.Digest):
		return nil, fmt.Errorf("its bytes are not those that the plan names: %w", ErrAltered)
	default:
		return data, nil
	}
}

// Check says whether manifest is the plan that reference names and is consistent in itself; it reads no chunk.
func Check(manifest *ptahv1.PtahSchemaPlan, reference ptahv1.ImmutableObjectReference) error {
	if manifest.Name != reference.Name || string(manifest.UID) != reference.UID {
		return fmt.Errorf("it has UID %s instead of %s: %w", manifest.UID, reference.UID, ErrAltered)
	}
	fingerprint, err := Fingerprint(manifest.Spec)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAltered, err)
	}
	if fingerprint != string(manifest.Spec.Fingerprint) || manifest.Name != Name(fingerprint) {
		return fmt.Errorf("its fingerprint does not follow from its content: %w", ErrAltered)
	}
	if !meta.IsStatusConditionTrue(manifest.Status.Conditions, ptahv1.ConditionReady) {
		return fmt.Errorf("its chunks are not all stored: %w", ErrAltered)
	}
	if len(manifest.Status.PublishedChunks) != len(manifest.Spec.Chunks) {
		return fmt.Errorf("it names %d chunks and %d are stored: %w", len(manifest.Spec.Chunks), len(manifest.Status.PublishedChunks), ErrAltered)
	}
	for i, published := range manifest.Status.PublishedChunks {
		if int(manifest.Spec.Chunks[i].Index) != i {
			return fmt.Errorf("chunk %d has index %d: %w", i, manifest.Spec.Chunks[i].Index, ErrAltered)
		}
		if published.Name != manifest.Spec.Chunks[i].Name || published.Name != ChunkName(manifest.Name, i) {
			return fmt.Errorf("chunk %d has the name %q: %w", i, published.Name, ErrAltered)
		}
	}
	return nil
}
