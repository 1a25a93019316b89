package subject

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/suites/bench"
)

// Hold is a session of a person who reads a table in a transaction that stays open. No other session can alter the
// table until it ends, while everybody can read it.
type Hold struct {
	subject *Subject
	session *sql.Conn
	open    bool
}

// reading are the statements that take such a hold of the table.
var reading = map[string][]string{
	lab.PostgreSQL: {"BEGIN", "LOCK TABLE customers IN ACCESS SHARE MODE"},
	lab.MySQL:      {"START TRANSACTION", "SELECT COUNT(*) FROM customers"},
}

// HoldCustomers opens such a session for the table customers. It ends with the test at the latest.
func (s *Subject) HoldCustomers(ctx context.Context) *Hold {
	s.T.Helper()
	sessions, session, err := s.Database.Session(ctx)
	s.Fixture(err)
	hold := &Hold{subject: s, session: session, open: true}
	s.T.Cleanup(func() {
		_ = session.Close() // both are only let go
		_ = sessions.Close()
	})
	for _, statement := range reading[s.Database.Server.Engine] {
		_, err := session.ExecContext(ctx, statement)
		s.Fixture(err)
	}
	return hold
}

// Release ends the transaction.
func (h *Hold) Release(ctx context.Context) {
	h.subject.T.Helper()
	if h.open {
		h.open = false
		_, err := h.session.ExecContext(ctx, "ROLLBACK")
		h.subject.Fixture(err)
	}
}

// Blocked is a session of the operator that waits for a lock of the database, as the server describes it. The server
// gives no two sessions of its life one ID and one start.
type Blocked struct {
	ID      int64  `json:"id"`
	Query   string `json:"query"`
	Started string `json:"started"` // of the session, in the server's own words; empty where it has none
}

// Same says whether both are one session of the server.
func (b Blocked) Same(other Blocked) bool { return b.ID == other.ID && b.Started == other.Started }

// waiting asks the server for the sessions that wait for a lock.
var waiting = map[string]string{
	lab.PostgreSQL: `SELECT pid, query, backend_start::text FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'`,
	lab.MySQL: `SELECT id, info, '' FROM performance_schema.processlist
		WHERE db = DATABASE() AND id <> CONNECTION_ID() AND state = 'Waiting for table metadata lock'`,
}

// AwaitBlocked waits until a session of the operator waits for a lock, and records it as witness.
func (s *Subject) AwaitBlocked(ctx context.Context) Blocked {
	s.T.Helper()
	bounded, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	sessions, err := s.Database.ByHand()
	s.Fixture(err)
	defer func() { _ = sessions.Close() }()
	for bounded.Err() == nil {
		found, err := blocked(ctx, sessions, s.Database.Server.Engine)
		s.Fixture(err)
		if len(found) == 1 {
			s.Witness("session that waits for a lock", found[0])
			return found[0]
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.Need("an Apply waits for a lock of the database", fmt.Errorf("no session of the operator waited for a lock within %s", Patience))
	return Blocked{}
}

// AwaitGone waits until a session that waited for a lock does so no more, because its client is gone. Whoever lets go of
// the lock before may see the statement of an Apply run whose Pod or Job is deleted already and whose process is not.
func (s *Subject) AwaitGone(ctx context.Context, session Blocked) {
	s.T.Helper()
	bounded, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	sessions, err := s.Database.ByHand()
	s.Fixture(err)
	defer func() { _ = sessions.Close() }()
	for bounded.Err() == nil {
		found, err := blocked(ctx, sessions, s.Database.Server.Engine)
		s.Fixture(err)
		if !slices.ContainsFunc(found, session.Same) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.Need("the session of the lost Apply ends", fmt.Errorf("session %d still waited for a lock after %s", session.ID, Patience))
}

func blocked(ctx context.Context, sessions *sql.DB, engine string) ([]Blocked, error) {
	rows, err := sessions.QueryContext(ctx, waiting[engine])
	if err != nil {
		return nil, fmt.Errorf("list the sessions that wait for a lock: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var found []Blocked
	for rows.Next() {
		var one Blocked
		if err := rows.Scan(&one.ID, &one.Query, &one.Started); err != nil {
			return nil, fmt.Errorf("list the sessions that wait for a lock: %w", err)
		}
		found = append(found, one)
	}
	return found, rows.Err()
}

// Apply is an Apply that runs, with everything whose identity must not change under it.
type Apply struct {
	OperationID string            `json:"operationID"`
	Job         string            `json:"job"`
	JobUID      string            `json:"jobUID"`
	PodUID      string            `json:"podUID"`
	Lease       *bench.RealmLease `json:"lease"`
	Blocked     Blocked           `json:"blocked"`

	pod corev1.Pod
}

// BlockedApply approves a plan that alters a held table, and returns the Apply that waits for it.
func (s *Subject) BlockedApply(ctx context.Context, waiting *v1alpha1.PtahSchema, approval string) Apply {
	s.T.Helper()
	s.Approve(ctx, waiting, approval)
	session := s.AwaitBlocked(ctx)
	apply := s.Running(ctx)
	apply.Blocked = session
	return apply
}

// Running reads the Apply that runs now.
func (s *Subject) Running(ctx context.Context) Apply {
	s.T.Helper()
	schema := &v1alpha1.PtahSchema{}
	s.Fixture(s.Bench.Client.Get(ctx, s.Key, schema))
	claim := schema.Status.ActiveOperation
	if claim == nil || claim.Type != v1alpha1.OperationApply {
		s.Need("an Apply is claimed", fmt.Errorf("the claim is %v", claim))
	}
	job := &batchv1.Job{}
	s.Fixture(s.Bench.Client.Get(ctx, client.ObjectKey{Namespace: s.Key.Namespace, Name: claim.JobName}, job))
	pods := &corev1.PodList{}
	s.Fixture(s.Bench.Client.List(ctx, pods, client.InNamespace(s.Key.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}))
	s.Need("the Apply has one Pod", ErrorUnless(len(pods.Items) == 1, fmt.Sprintf("Job %s has %d Pods", job.Name, len(pods.Items))))
	lease, err := s.Bench.RealmLease(ctx, claim.LeaseEpoch)
	s.Fixture(err)
	return Apply{OperationID: claim.ID, Job: job.Name, JobUID: string(job.UID), PodUID: string(pods.Items[0].UID), Lease: lease, pod: pods.Items[0]}
}

// Pod is the Pod of the Apply as it was read.
func (a Apply) Pod() *corev1.Pod { return a.pod.DeepCopy() }
