// Package subject is one PtahSchema under test with everything that it needs: a namespace, a database, a published
// artifact and the credentials. It acts as the people around a schema do and reads what happened from outside the
// product. It decides nothing but whether a fixture could be made; suites assert.
package subject

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/suites/bench"
)

const (
	// Interval is the smallest that the API accepts, so that a suite sees several refreshes.
	Interval = 10 * time.Second
	// Seldom is an interval in which no refresh of the schedule falls into a scenario.
	Seldom = time.Hour
	// Retry is the pause after a failure, and the smallest that the API accepts.
	Retry = 5 * time.Second
	// Patience bounds one step of a scenario. A step that takes longer has failed; it is never raised to pass.
	Patience = 3 * time.Minute

	secretName = "orders-db"
	schemaName = "orders"
)

// Subject is one schema under test.
type Subject struct {
	*bench.Scenario
	Database *bench.Database
	Key      client.ObjectKey
	Artifact tenant.Artifact
	Every    time.Duration
	// Shape changes the PtahSchema before it is declared; nil leaves it as bench.Schema makes it.
	Shape func(*v1alpha1.PtahSchema)
	// Author declares the PtahSchema; nil is the lab's administrator.
	Author client.Client
}

// Prepare makes namespace, database, Secret and artifact, and no PtahSchema yet.
func Prepare(ctx context.Context, s *bench.Scenario, version Version, every time.Duration) *Subject {
	s.T.Helper()
	namespace := s.Namespace(ctx)
	subject := &Subject{Scenario: s, Database: s.Database(ctx), Every: every, Key: client.ObjectKey{Namespace: namespace, Name: schemaName}}
	subject.Publish(ctx, version)
	s.Fixture(s.Bench.Client.Create(ctx, tenant.Secret(namespace, secretName, subject.Database.ClusterURL())))
	return subject
}

// Declare creates the PtahSchema.
func (s *Subject) Declare(ctx context.Context) {
	s.T.Helper()
	schema := s.Bench.Schema(s.Key.Namespace, s.Key.Name, s.Artifact, secretName, s.Every, Retry)
	if s.Shape != nil {
		s.Shape(schema)
	}
	author := s.Author
	if author == nil {
		author = s.Bench.Client
	}
	s.Need("declared", author.Create(ctx, schema))
}

// Await follows the schema until done, records the way there, and returns the last state.
func (s *Subject) Await(ctx context.Context, what string, done func(*v1alpha1.PtahSchema) bool) (*v1alpha1.PtahSchema, []bench.Transition) {
	s.T.Helper()
	bounded, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	schema, seen, err := s.Bench.Await(bounded, s.Key, what, done)
	s.Observe("transitions until "+what, seen)
	s.Need("reached: "+what, err)
	return schema, seen
}

// Approve creates the approval of the plan that waits.
func (s *Subject) Approve(ctx context.Context, schema *v1alpha1.PtahSchema, name string) *v1alpha1.PtahSchemaApproval {
	s.T.Helper()
	approval := bench.Approval(schema, name)
	s.Need("approval "+name+" accepted by admission", s.Bench.Client.Create(ctx, approval))
	return approval
}

// Converge brings the schema from nothing to proven convergence and returns the state.
func (s *Subject) Converge(ctx context.Context) *v1alpha1.PtahSchema {
	s.T.Helper()
	s.Declare(ctx)
	waiting, _ := s.Await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
	s.Approve(ctx, waiting, "first")
	schema, _ := s.Await(ctx, "proven convergence", bench.InSync)
	return schema
}

// Publish moves the tag of the artifact to a version.
func (s *Subject) Publish(ctx context.Context, version Version) {
	s.T.Helper()
	sql, known := version[s.Database.Server.Engine]
	if !known {
		s.Fixture(fmt.Errorf("the version is not written for %s", s.Database.Server.Engine))
	}
	artifact, err := tenant.PushSchema(ctx, s.Bench.Lab, "schemas/"+s.Key.Namespace, "v1", sql)
	s.Fixture(err)
	s.Artifact = artifact
}

// PlanFor publishes a version, asks for a refresh and waits until its plan waits for a person.
func (s *Subject) PlanFor(ctx context.Context, version Version, what string) *v1alpha1.PtahSchema {
	s.T.Helper()
	s.Publish(ctx, version)
	s.Touch(ctx)
	waiting, _ := s.Await(ctx, what, func(now *v1alpha1.PtahSchema) bool {
		return bench.AwaitingApproval(now) && now.Status.Plan.ArtifactDigest == s.Artifact.Digest
	})
	return waiting
}

// Touch asks for a refresh now, as a person does by an edit of the spec. Each call writes another interval.
func (s *Subject) Touch(ctx context.Context) {
	s.T.Helper()
	s.Every += time.Second
	s.Patch(ctx, fmt.Sprintf(`{"spec":{"interval":%q}}`, s.Every))
}

// Patch edits the PtahSchema by a JSON merge patch, because the manager writes the same object.
func (s *Subject) Patch(ctx context.Context, patch string) {
	s.T.Helper()
	schema := &v1alpha1.PtahSchema{}
	schema.Namespace, schema.Name = s.Key.Namespace, s.Key.Name
	s.Fixture(s.Bench.Client.Patch(ctx, schema, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// PointAt lets the schema's Secret name another database.
func (s *Subject) PointAt(ctx context.Context, url string) {
	s.T.Helper()
	s.Fixture(s.Bench.Client.Update(ctx, tenant.Secret(s.Key.Namespace, secretName, url)))
}

// Journal reads the server's own statement journal of the subject's database.
func (s *Subject) Journal(since time.Time) *bench.Journal {
	s.T.Helper()
	journal, err := s.Database.Journal(since)
	s.Fixture(err)
	return journal
}

// Columns reads the database itself.
func (s *Subject) Columns(ctx context.Context) []string {
	s.T.Helper()
	columns, err := s.Database.Columns(ctx)
	s.Fixture(err)
	return columns
}

// ErrorUnless turns a comparison into the error that Need takes.
func ErrorUnless(held bool, message string) error {
	if held {
		return nil
	}
	return errors.New(message)
}
