package dataplane

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab/tenant"
	"ptah.run/ptah/qualification/suites/bench"
)

const (
	firstVersion = "CREATE TABLE customers (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL UNIQUE);\n" +
		"CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers (id), total numeric(12,2) NOT NULL CHECK (total >= 0));\n" +
		"CREATE INDEX orders_customer ON orders (customer_id);\n"
	secondVersion = firstVersion + "ALTER TABLE customers ADD COLUMN name text;\n"

	// interval is the smallest that the API accepts, so that a suite sees several refreshes.
	interval = 10 * time.Second
	// retry is the pause after a failure, and the smallest that the API accepts.
	retry = 5 * time.Second
	// patience bounds one step of a scenario. A step that takes longer has failed; it is never raised to pass.
	patience = 3 * time.Minute
)

// subject is one schema under test with everything it needs.
type subject struct {
	*bench.Scenario
	database *bench.Database
	key      client.ObjectKey
	artifact tenant.Artifact
	every    time.Duration
}

// prepare makes namespace, database, Secret and artifact, and no PtahSchema yet.
func prepare(ctx context.Context, s *bench.Scenario, sql string, every time.Duration) *subject {
	s.T.Helper()
	namespace := s.Namespace(ctx)
	database := s.Database(ctx)
	artifact, err := tenant.PushSchema(ctx, s.Bench.Lab, "schemas/"+namespace, "v1", sql)
	s.Fixture(err)
	s.Fixture(s.Bench.Client.Create(ctx, tenant.Secret(namespace, "orders-db", database.ClusterURL())))
	return &subject{Scenario: s, database: database, artifact: artifact, every: every, key: client.ObjectKey{Namespace: namespace, Name: "orders"}}
}

// declare creates the PtahSchema.
func (s *subject) declare(ctx context.Context) {
	s.T.Helper()
	s.Need("declared", s.Bench.Client.Create(ctx, bench.Schema(s.key.Namespace, s.key.Name, s.artifact, "orders-db", s.every, retry)))
}

// await follows the schema until done, records the way there, and returns the last state.
func (s *subject) await(ctx context.Context, what string, done func(*v1alpha1.PtahSchema) bool) (*v1alpha1.PtahSchema, []bench.Transition) {
	s.T.Helper()
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	schema, seen, err := s.Bench.Await(bounded, s.key, what, done)
	s.Observe("transitions until "+what, seen)
	s.Need("reached: "+what, err)
	return schema, seen
}

// approve creates the approval of the plan that waits.
func (s *subject) approve(ctx context.Context, schema *v1alpha1.PtahSchema, name string) *v1alpha1.PtahSchemaApproval {
	s.T.Helper()
	approval := bench.Approval(schema, name)
	s.Need("approval "+name+" accepted by admission", s.Bench.Client.Create(ctx, approval))
	return approval
}

// converge brings the schema from nothing to proven convergence and returns the state.
func (s *subject) converge(ctx context.Context) *v1alpha1.PtahSchema {
	s.T.Helper()
	s.declare(ctx)
	waiting, _ := s.await(ctx, "a plan that waits for approval", bench.AwaitingApproval)
	s.approve(ctx, waiting, "first")
	schema, _ := s.await(ctx, "proven convergence", bench.InSync)
	return schema
}

// journal reads the server's own statement journal of the subject's database.
func (s *subject) journal(since time.Time) *bench.Journal {
	s.T.Helper()
	journal, err := s.database.Journal(since)
	s.Fixture(err)
	return journal
}

// columns reads the database itself.
func (s *subject) columns(ctx context.Context) []string {
	s.T.Helper()
	columns, err := s.database.Columns(ctx)
	s.Fixture(err)
	return columns
}

// publish moves the tag of the artifact to other SQL.
func (s *subject) publish(ctx context.Context, sql string) {
	s.T.Helper()
	artifact, err := tenant.PushSchema(ctx, s.Bench.Lab, "schemas/"+s.key.Namespace, "v1", sql)
	s.Fixture(err)
	s.artifact = artifact
}

// afterwork is how long after the write that ends a claim its last requests, such as the release of the Lease, are
// counted to it.
const afterwork = time.Second

// operations pairs the start and the end of each claim of a type in a list of transitions.
func operations(seen []bench.Transition, kind v1alpha1.OperationType) []span {
	var spans []span
	var open string
	for _, state := range seen {
		claim := state.Status.ActiveOperation
		if open != "" && (claim == nil || claim.ID != open) {
			spans[len(spans)-1].to = state.At.Add(afterwork)
			open = ""
		}
		if claim != nil && claim.Type == kind && claim.ID != open {
			spans = append(spans, span{from: claim.StartedAt.Time})
			open = claim.ID
		}
	}
	if open != "" {
		spans = spans[:len(spans)-1]
	}
	return spans
}

// span is the time of one operation as a watch saw it.
type span struct{ from, to time.Time }
