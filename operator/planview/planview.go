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

// View is a verified plan.
type View struct {
	Which  Which
	Schema *v1alpha1.PtahSchema
	Plan   *v1alpha1.PtahSchemaPlan
	// Data are the stored bytes, Document what they say.
	Data     []byte
	Document *report.Plan
}

// expected is what the schema's status says of a plan.
type expected struct {
	reference     v1alpha1.ImmutableObjectReference
	fingerprint   string
	contentDigest string // empty where the status does not say
}

// Fetch reads and verifies. It takes two requests and one per chunk. An error that wraps ErrNothing says that there is
// nothing; every other says that something could not be read or did not hold.
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
	view.Plan, view.Data, err = plan.Read(ctx, reader, namespace, want.reference)
	if err != nil {
		return nil, err
	}
	if err := view.verify(want); err != nil {
		return nil, fmt.Errorf("plan %s is not the one that PtahSchema %q names: %w", view.Plan.Name, name, err)
	}
	return view, nil
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

// verify goes on where plan.Read ends: the plan is consistent in itself; is it the schema's, and does its manifest say
// of its bytes what they say?
func (v *View) verify(want expected) error {
	spec := &v.Plan.Spec
	owner := metav1.GetControllerOf(v.Plan)
	if owner == nil || owner.UID != v.Schema.UID || spec.SchemaRef.UID != string(v.Schema.UID) {
		return errors.New("it belongs to another PtahSchema")
	}
	if string(spec.Fingerprint) != want.fingerprint {
		return fmt.Errorf("its fingerprint is %s, and the status says %s", spec.Fingerprint, want.fingerprint)
	}
	if want.contentDigest != "" && string(spec.ContentDigest) != want.contentDigest {
		return fmt.Errorf("its content digest is %s, and the status says %s", spec.ContentDigest, want.contentDigest)
	}
	document, err := report.DecodePlan(v.Data)
	if err != nil {
		return fmt.Errorf("its bytes are not a plan: %w", err)
	}
	v.Document = document
	changes := make([]string, 0, len(document.PrivilegeChanges))
	for _, change := range document.PrivilegeChanges {
		changes = append(changes, string(change))
	}
	recorded := make([]string, 0, len(spec.PrivilegeChanges))
	for _, change := range spec.PrivilegeChanges {
		recorded = append(recorded, string(change))
	}
	slices.Sort(recorded)
	switch {
	case document.Dialect != spec.Dialect:
		return fmt.Errorf("its bytes are for %s and its manifest says %s", document.Dialect, spec.Dialect)
	case document.FromFingerprint != string(spec.ActualStateFingerprint) || document.ToFingerprint != string(spec.DesiredStateFingerprint):
		return errors.New("its bytes lead from or to another state than its manifest says")
	case len(document.Statements) != int(spec.StatementCount):
		return fmt.Errorf("its bytes hold %d statements and its manifest says %d", len(document.Statements), spec.StatementCount)
	case document.Destructive && !spec.Destructive:
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
