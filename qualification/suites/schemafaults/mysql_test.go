package schemafaults

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// onMySQL is a version that is written for MySQL alone.
func onMySQL(statement string) subject.Version {
	return subject.Version{lab.MySQL: subject.First[lab.MySQL] + statement}
}

// The second keeps the index that the first makes, and a duplicate may come in once it is gone.
var (
	withUniqueName = onMySQL("ALTER TABLE customers ADD COLUMN name varchar(64);\nCREATE UNIQUE INDEX by_name ON customers (name);\n")
	withoutUnique  = onMySQL("ALTER TABLE customers ADD COLUMN name varchar(64);\n")
)

// TestMysqlLifecycle moves a tag under a plan that waits, and then to a version that drops a unique index. MySQL itself
// would drop it without a word; the plan is held as destructive, whatever happens around it, until a person permits it,
// and then waits for an approval although the policy asks for none.
// It does not run beside the others: it replaces the manager's Pods.
func TestMysqlLifecycle(t *testing.T) {
	scenario(t, "mysql-lifecycle", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Interval)
		jobs := one.RecordJobs(ctx)
		one.Converge(ctx)

		stale := one.PlanFor(ctx, subject.Second, "a plan that the tag leaves behind")
		fresh := one.PlanFor(ctx, withUniqueName, "a plan for what the tag means now")
		s.Check("the moved tag made another plan", fresh.Status.Plan.UID != stale.Status.Plan.UID, "the plan is still %s", stale.Status.Plan.Name)
		late := bench.Approval(stale, "late")
		err := s.Bench.Client.Create(ctx, late)
		s.Check("the plan that was left behind cannot be approved", err != nil && strings.Contains(err.Error(), "spec.plan"), "an approval of plan %s got: %v", stale.Status.Plan.Name, err)
		one.AppliesOnce(ctx, jobs, fresh, "moved")
		s.Check("what runs in no transaction says so", fresh.Status.Plan.TransactionMode == "none", "status.plan.transactionMode is %q", fresh.Status.Plan.TransactionMode)

		applies, since := len(jobs.Applies(ctx)), time.Now()
		one.Patch(ctx, `{"spec":{"policy":{"apply":"Always"}}}`)
		one.Publish(ctx, withoutUnique)
		one.Touch(ctx)
		held, _ := one.Await(ctx, "a plan that is held as destructive", func(now *v1alpha1.PtahSchema) bool {
			return heldAsDestructive(now) && now.Status.Plan.ArtifactDigest == one.Artifact.Digest
		})
		s.Check("the policy of the held plan asks nobody", held.Spec.Policy.Apply == v1alpha1.ApplyAlways, "the policy is %+v", held.Spec.Policy)
		still := refreshed(ctx, one, held, 3)
		s.Check("held across three refreshes", heldAsDestructive(still) && still.Status.Plan.UID == held.Status.Plan.UID, "Ready is %v", meta.FindStatusCondition(still.Status.Conditions, v1alpha1.ConditionReady))

		replaced, err := s.Bench.RestartManagers(ctx)
		s.Fixture(err)
		s.Witness("Pods of the manager that were replaced", replaced)
		again := refreshed(ctx, one, still, 1)
		s.Check("held by managers that know nothing but the status", heldAsDestructive(again) && again.Status.Plan.UID == held.Status.Plan.UID, "Ready is %v", meta.FindStatusCondition(again.Status.Conditions, v1alpha1.ConditionReady))
		journal := one.Journal(since)
		s.Check("the database is untouched", len(journal.Writes) == 0 && hasIndex(ctx, one, "by_name"), "the journal shows writing statements: %v", journal.Writes)
		s.Check("control: the database was read", len(journal.Reads) > 0, "the journal shows no reading either, so it proves nothing")
		s.Check("nothing was dispatched", len(jobs.Applies(ctx)) == applies, "Apply Jobs of the record: %v", jobs.Applies(ctx))

		one.Patch(ctx, `{"spec":{"policy":{"allowDestructive":true}}}`)
		permitted, _ := one.Await(ctx, "a permitted plan that asks for a person", func(now *v1alpha1.PtahSchema) bool {
			return bench.AwaitingApproval(now) && now.Status.RefreshedGeneration == now.Generation
		})
		s.Check("what is permitted is what was held", permitted.Status.Plan.ContentDigest == held.Status.Plan.ContentDigest, "the content was %s and is %s", held.Status.Plan.ContentDigest, permitted.Status.Plan.ContentDigest)
		one.AppliesOnce(ctx, jobs, permitted, "permitted")
		s.Check("control: once a person approves it the index goes", !hasIndex(ctx, one, "by_name"), "the index is still there")
	})
}

func heldAsDestructive(now *v1alpha1.PtahSchema) bool {
	return bench.Settled(now) && now.Status.Phase == v1alpha1.PhaseBlocked && now.Status.Plan != nil && now.Status.Plan.Destructive &&
		bench.Condition(now, v1alpha1.ConditionReady, "False", v1alpha1.ReasonDestructiveChangesDisabled)
}

// refreshed waits for a number of refreshes after a state.
func refreshed(ctx context.Context, one *subject.Subject, from *v1alpha1.PtahSchema, count int) *v1alpha1.PtahSchema {
	one.T.Helper()
	seen, last := 0, from.Status.LastSuccessfulReconciliation
	now, _ := one.Await(ctx, fmt.Sprintf("%d more refreshes", count), func(now *v1alpha1.PtahSchema) bool {
		if success := now.Status.LastSuccessfulReconciliation; bench.Settled(now) && success != nil && !success.Equal(last) {
			seen, last = seen+1, success
		}
		return seen == count
	})
	return now
}

func hasIndex(ctx context.Context, one *subject.Subject, name string) bool {
	one.T.Helper()
	sessions, err := one.Database.ByHand()
	one.Fixture(err)
	defer func() { _ = sessions.Close() }()
	var count int
	one.Fixture(sessions.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = DATABASE() AND index_name = ?", name).Scan(&count))
	return count > 0
}

// payload is what a session would run if a URL could carry it.
const payload = "'';DROP TABLE orders"

// injections are parameters that other clients of MySQL take and that bring SQL into a session, or let one statement
// carry several.
var injections = map[string]url.Values{
	"several statements": {"multiStatements": {"true"}, "note": {payload}},
	"a session setting":  {"sql_mode": {payload}},
	"a first command":    {"init_command": {"SET @a=" + payload}},
	"in a name":          {payload: {"true"}},
	"said twice":         {payload: {"true", "false"}},
}

// TestMysqlDsnRefusal gives the schema URLs that carry SQL. Each is refused before a scratch server or a session of the
// database is opened, and what it carries is in nothing that a person or a log is shown.
func TestMysqlDsnRefusal(t *testing.T) {
	t.Parallel()
	scenario(t, "mysql-dsn-refusal", func(ctx context.Context, s *bench.Scenario) {
		one := subject.Prepare(ctx, s, subject.First, subject.Seldom)
		converged := one.Converge(ctx)
		logs, err := kubernetes.NewForConfig(s.Bench.Config)
		s.Fixture(err)
		columns := one.Columns(ctx)
		for _, name := range slices.Sorted(maps.Keys(injections)) {
			address, err := url.Parse(one.Database.ClusterURL())
			s.Fixture(err)
			address.RawQuery = injections[name].Encode()
			since := time.Now()
			one.PointAt(ctx, address.String())
			one.Touch(ctx)
			tried := false
			refused, _ := one.Await(ctx, "a refusal of "+name, func(now *v1alpha1.PtahSchema) bool {
				claim := now.Status.ActiveOperation
				tried = tried || claim != nil && claim.Generation == now.Generation
				return tried && bench.Settled(now) && bench.Condition(now, v1alpha1.ConditionReady, "False", v1alpha1.ReasonConfigurationError)
			})
			ready := meta.FindStatusCondition(refused.Status.Conditions, v1alpha1.ConditionReady)
			s.Observe("what is said of "+name, ready.Message)
			s.Check("the sentence is about the URL: "+name, strings.Contains(ready.Message, "the database URL has a parameter"), "Ready says %q", ready.Message)
			journal := one.Journal(since)
			s.Check("no session was opened: "+name, len(journal.Reads)+len(journal.Writes)+journal.AuthenticationFailures == 0, "the journal shows reading %v and writing %v", journal.Reads, journal.Writes)
			text, err := podLogs(ctx, s, logs, one.Key.Namespace)
			s.Fixture(err)
			s.Check("control: the Pods did write logs: "+name, text != "", "no Pod of the namespace wrote anything, so that nothing is proven by its absence")
			s.Check("nothing shows what it carries: "+name, !shows(text+fmt.Sprint(refused.Status), payload), "a log or the status holds the payload")
		}
		s.Check("control: what is looked for can be found", shows("? "+url.QueryEscape(payload), payload) && shows(payload, payload), "the payload is not recognised")

		since := time.Now()
		one.PointAt(ctx, one.Database.ClusterURL())
		one.Touch(ctx)
		again, _ := one.Await(ctx, "convergence with the right URL", func(now *v1alpha1.PtahSchema) bool { return bench.InSync(now) && now.Status.FailedAttempts == 0 })
		s.Check("the schema is unchanged", slices.Equal(columns, one.Columns(ctx)) && again.Status.Target.StateFingerprint == converged.Status.Target.StateFingerprint,
			"the state was %s and is %s", converged.Status.Target.StateFingerprint, again.Status.Target.StateFingerprint)
		journal := one.Journal(since)
		s.Check("control: the right URL opens a session", len(journal.Reads) > 0, "the journal shows no reading")
	})
}

// shows says whether a text holds words as they are or in the form that they have in a URL.
func shows(text, words string) bool {
	for _, form := range []string{words, url.QueryEscape(words), url.PathEscape(words), "DROP TABLE"} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// podLogs reads what every container of the namespace's Pods wrote.
func podLogs(ctx context.Context, s *bench.Scenario, logs kubernetes.Interface, namespace string) (string, error) {
	pods := &corev1.PodList{}
	if err := s.Bench.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("list the Pods of namespace %s: %w", namespace, err)
	}
	var all strings.Builder
	for _, pod := range pods.Items {
		for _, container := range append(slices.Clone(pod.Spec.InitContainers), pod.Spec.Containers...) {
			stream, err := logs.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name}).Stream(ctx)
			if err != nil {
				continue // a container that never began wrote nothing
			}
			text, err := io.ReadAll(io.LimitReader(stream, 1<<20))
			_ = stream.Close() // it was only read
			if err != nil {
				return "", fmt.Errorf("read the log of Pod %s: %w", pod.Name, err)
			}
			all.Write(text)
		}
	}
	return all.String(), nil
}
