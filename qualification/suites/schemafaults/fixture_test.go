package schemafaults

import (
	"context"
	"slices"
	"time"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

const (
	planned = "customers.name" // the column that the second version adds
	// short is the deadline of an Apply that is to run into it, and lockWait is no shorter, so that the deadline and not
	// the lock timeout ends the statement.
	short    = 60
	lockWait = short * time.Second
	// long is the deadline of an Apply that is to outlive its hold.
	long    = 300
	patient = 4 * time.Minute
	// settleTime bounds the way from a lost Apply to its proof: deadline, grace and one refresh.
	settleTime = 2 * subject.Patience
)

// underway is a schema whose second version is being applied, with the statement waiting for a held table.
type underway struct {
	*subject.Subject
	jobs    *subject.Jobs
	waiting *v1alpha1.PtahSchema
	since   time.Time
	hold    *subject.Hold
	apply   subject.Apply
}

// begin brings a schema to the point where the statement of an approved plan waits for a lock.
func begin(ctx context.Context, s *bench.Scenario, deadline int64, lock time.Duration) *underway {
	s.T.Helper()
	one := &underway{Subject: subject.Prepare(ctx, s, subject.First, subject.Seldom)}
	one.Shape = func(schema *v1alpha1.PtahSchema) {
		schema.Spec.Execution.ActiveDeadlineSeconds = deadline
		schema.Spec.Policy.LockTimeout.Duration = lock
	}
	one.jobs = one.RecordJobs(ctx)
	one.Converge(ctx)
	one.waiting = one.PlanFor(ctx, subject.Second, "a plan for the second version")
	one.hold = one.HoldCustomers(ctx)
	one.since = time.Now()
	one.apply = one.BlockedApply(ctx, one.waiting, "second")
	s.Need("the Apply holds the realm's Lease", subject.ErrorUnless(one.apply.Lease != nil, "no Lease carries the epoch of the claim"))
	return one
}

// unknown waits for the state in which the outcome of the Apply is not established.
func (u *underway) unknown(ctx context.Context, what string) *v1alpha1.PtahSchema {
	u.T.Helper()
	state, _ := u.Await(ctx, what, func(now *v1alpha1.PtahSchema) bool {
		pending := now.Status.PendingObservation
		return pending != nil && pending.ApplyOperationID == u.apply.OperationID && pending.Outcome == v1alpha1.OutcomeUnknown
	})
	u.Check("not in sync while the outcome is unknown", !bench.InSync(state), "a lost Apply must not count as convergence")
	lease, err := u.Bench.RealmLease(ctx, state.Status.PendingObservation.LeaseEpoch)
	u.Fixture(err)
	u.Check("the Lease is held through the proof", lease != nil && *lease == *u.apply.Lease, "the Apply held %v, the proof holds %v", u.apply.Lease, lease)
	return state
}

// unreplayed waits until the proof settled the outcome, and checks that the one attempt stayed the only one.
func (u *underway) unreplayed(ctx context.Context) *v1alpha1.PtahSchema {
	u.T.Helper()
	bounded, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	fresh, seen, err := u.Bench.Await(bounded, u.Key, "a settled outcome and a fresh plan", bench.AwaitingApproval)
	u.Observe("transitions until a settled outcome", seen)
	u.Need("reached: a settled outcome and a fresh plan", err)
	u.Check("the lost Apply is not credited", fresh.Status.Applied == nil || fresh.Status.Applied.PlanFingerprint != u.waiting.Status.Plan.Fingerprint, "status.applied must not name the lost Apply's plan")
	u.Check("the database is as before", !slices.Contains(u.Columns(ctx), planned), "the column of the lost Apply must not be there")
	u.once(ctx, "the lost Apply")
	return fresh
}

// once checks that the plan's statements were sent by one Apply and by no other.
func (u *underway) once(ctx context.Context, what string) {
	u.T.Helper()
	applies := u.jobs.Applies(ctx)
	u.Check("one Apply Job for "+what, len(applies) == 2 && applies[1].UID == u.apply.JobUID, "Apply Jobs of the record, the first of them of the first version: %v", applies)
	writes := u.Journal(u.since).Writes
	u.Check("the statement was sent once by "+what, len(writes) == int(u.waiting.Status.Plan.StatementCount), "the plan has %d statements, the journal shows %v", u.waiting.Status.Plan.StatementCount, writes)
}
