// Package planview shows a person exactly what an approval would authorise. It reads a schema, its plan and the plan's
// chunks, and it shows nothing before names, UIDs, owners, order, sizes, digests, content digest and fingerprint all
// held. It writes nothing to the cluster.
package planview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
)

// ErrNothing says that there is nothing to show: no such schema, or no such plan.
var ErrNothing = errors.New("nothing to show")

// Which plan of a schema to show.
type Which string

// Plans of a schema.
const (
	// Current is the plan that the schema's status names.
	Current Which = "current"
	// Applied is the plan of the last Apply that was proven to have converged.
	Applied Which = "applied"
)

// View is a verified plan. Its statements are read from where Fetch keeps the bytes, one at a time; Close forgets them.
type View struct {
	Which  Which
	Schema *v1alpha1.PtahSchema
	Plan   *v1alpha1.PtahSchemaPlan
	// Header is what the stored bytes say, without the statements.
	Header *report.Plan

	count       int
	destructive []int // numbers of statements, from 1
	bytes       *spool
}

// expected is what the schema's status says of a plan.
type expected struct {
	reference     v1alpha1.ImmutableObjectReference
	fingerprint   string
	contentDigest string // empty where the status does not say
}

// Fetch reads and verifies. It takes two requests and one per chunk, and holds one chunk and one statement at a time.
// An error that wraps ErrNothing says that there is nothing; every other says that something could not be read or did
// not hold. The View must be closed.
func Fetch(ctx context.Context, reader client.Reader, namespace, name string, which Which) (*View, error) {
	view := &View{Which: which, Schema: &v1alpha1.PtahSchema{}}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, view.Schema)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: PtahSchema %q does not exist in namespace %q", ErrNothing, name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read PtahSchema %q in namespace %q: %w", name, namespace, err)
	}
	want, err := wanted(view.Schema, which)
	if err != nil {
		return nil, err
	}
	if err := view.load(ctx, reader, want); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return view, nil
}

// Close forgets the bytes.
func (v *View) Close() error {
	if v.bytes == nil {
		return nil
	}
	return v.bytes.Close()
}

func (v *View) load(ctx context.Context, reader client.Reader, want expected) error {
	namespace, name := v.Schema.Namespace, want.reference.Name
	manifest, err := plan.Open(ctx, reader, namespace, want.reference)
	if err != nil {
		return v.unusable(want, err)
	}
	v.Plan = manifest
	if err := v.verifyManifest(want); err != nil {
		return fmt.Errorf("plan %s is not the one that PtahSchema %q names: %w", name, v.Schema.Name, err)
	}
	if v.bytes, err = newSpool(manifest.Spec.Size); err != nil {
		return err
	}
	if err := plan.Copy(ctx, reader, manifest, v.bytes); err != nil {
		return v.unusable(want, err)
	}
	if err := v.scan(); err != nil {
		return fmt.Errorf("plan %s is not the one that PtahSchema %q names: its bytes are not a plan: %w", name, v.Schema.Name, err)
	}
	if err := v.verifyBytes(); err != nil {
		return fmt.Errorf("plan %s is not the one that PtahSchema %q names: %w", name, v.Schema.Name, err)
	}
	return nil
}

// unusable says what to do about a plan that is not whole. What could not be read is the API server's own error.
func (v *View) unusable(want expected, err error) error {
	if !apierrors.IsNotFound(err) && !errors.Is(err, plan.ErrAltered) {
		return err
	}
	if v.Which == Applied {
		return fmt.Errorf("the plan that was applied last cannot be shown, because it is not stored as it was: %w", err)
	}
	return fmt.Errorf("the plan cannot be shown, approved or applied, because it is not stored as it was: %w; delete PtahSchemaPlan %s in namespace %s, and the next refresh stores it anew", err, want.reference.Name, v.Schema.Namespace)
}

// scan reads the bytes once from beginning to end.
func (v *View) scan() error {
	header, err := report.ScanPlan(v.bytes.Open(), v.bytes.Open(), func(s *report.Statement) error {
		v.count++
		if s.Severity == report.SeverityDestructive {
			v.destructive = append(v.destructive, v.count)
		}
		return nil
	})
	v.Header = header
	return err
}

// each visits the statements of a verified plan in order. What a statement points to is overwritten by the next.
func (v *View) each(visit func(*report.Statement) error) error {
	_, err := report.ScanPlan(v.bytes.Open(), v.bytes.Open(), visit)
	return err
}

func wanted(schema *v1alpha1.PtahSchema, which Which) (expected, error) {
	if which == Applied {
		applied := schema.Status.Applied
		if applied == nil {
			return expected{}, fmt.Errorf("%w: no plan of PtahSchema %q was applied yet", ErrNothing, schema.Name)
		}
		return expected{reference: applied.PlanRef, fingerprint: applied.PlanFingerprint}, nil
	}
	current := schema.Status.Plan
	if current == nil {
		return expected{}, fmt.Errorf("%w: PtahSchema %q has no plan (phase %s)", ErrNothing, schema.Name, phaseWord(schema))
	}
	return expected{
		reference:     current.ImmutableObjectReference,
		fingerprint:   current.Fingerprint,
		contentDigest: current.ContentDigest,
	}, nil
}

func phaseWord(schema *v1alpha1.PtahSchema) string {
	if schema.Status.Phase == "" {
		return "none yet"
	}
	return string(schema.Status.Phase)
}

// verifyManifest goes on where plan.Open ends: the plan is consistent in itself; is it the schema's?
func (v *View) verifyManifest(want expected) error {
	spec := &v.Plan.Spec
	owner := metav1.GetControllerOf(v.Plan)
	switch {
	case owner == nil || owner.UID != v.Schema.UID || spec.SchemaRef.UID != string(v.Schema.UID):
		return errors.New("it belongs to another PtahSchema")
	case string(spec.Fingerprint) != want.fingerprint:
		return fmt.Errorf("its fingerprint is %s, and the status says %s", spec.Fingerprint, want.fingerprint)
	case want.contentDigest != "" && string(spec.ContentDigest) != want.contentDigest:
		return fmt.Errorf("its content digest is %s, and the status says %s", spec.ContentDigest, want.contentDigest)
	}
	return nil
}

// verifyBytes asks whether the manifest says of the bytes what they say.
func (v *View) verifyBytes() error {
	spec, header := &v.Plan.Spec, v.Header
	changes := make([]string, 0, len(header.PrivilegeChanges))
	for _, change := range header.PrivilegeChanges {
		changes = append(changes, string(change))
	}
	recorded := make([]string, 0, len(spec.PrivilegeChanges))
	for _, change := range spec.PrivilegeChanges {
		recorded = append(recorded, string(change))
	}
	switch {
	case header.Dialect != spec.Dialect:
		return fmt.Errorf("its bytes are for %s and its manifest says %s", header.Dialect, spec.Dialect)
	case header.FromFingerprint != string(spec.ActualStateFingerprint) || header.ToFingerprint != string(spec.DesiredStateFingerprint):
		return errors.New("its bytes lead from or to another state than its manifest says")
	case v.count != int(spec.StatementCount):
		return fmt.Errorf("its bytes hold %d statements and its manifest says %d", v.count, spec.StatementCount)
	case header.Destructive && !spec.Destructive:
		return errors.New("its bytes are destructive and its manifest says that they are not")
	case !containsAll(recorded, changes):
		return errors.New("its bytes change privileges that its manifest does not name")
	}
	return nil
}

// containsAll allows a manifest to say more than the bytes: a second classification may only raise.
func containsAll(all, some []string) bool {
	for _, item := range some {
		if !slices.Contains(all, item) {
			return false
		}
	}
	return true
}

// Waiting says whether the schema waits for an approval of this plan.
func (v *View) Waiting() bool {
	status := &v.Schema.Status
	return v.Which == Current && status.Plan.Approval == nil && status.PendingObservation == nil &&
		meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionApprovalRequired)
}
