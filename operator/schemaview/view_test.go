package schemaview

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"ptah.run/ptah/operator/api/v1alpha1"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func at(minutes int) *metav1.Time {
	moment := metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute))
	return &moment
}

func digest(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func said(name, status string, reason v1alpha1.Reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: name, Status: metav1.ConditionStatus(status), Reason: string(reason), Message: message, ObservedGeneration: 2, LastTransitionTime: *at(-30),
	}
}

// waiting is a resource whose plan waits for an approval.
func waiting() *v1alpha1.PtahSchema {
	s := &v1alpha1.PtahSchema{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "schema-uid", Generation: 2, CreationTimestamp: *at(-60)},
		Spec: v1alpha1.PtahSchemaSpec{
			Target: v1alpha1.DatabaseTargetSpec{Engine: v1alpha1.EnginePostgreSQL, CoordinationKey: "orders",
				URLFrom: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "orders-database"}, Key: "url"}},
			Desired:  v1alpha1.OCIArtifactSourceSpec{OCIRef: "oci://registry.example/shop/orders:v2"},
			Interval: metav1.Duration{Duration: 10 * time.Minute},
		},
	}
	s.Status = v1alpha1.PtahSchemaStatus{
		ObservedGeneration: 2, Phase: v1alpha1.PhaseAwaitingApproval, RefreshedGeneration: 2,
		Source: &v1alpha1.SchemaSourceStatus{Digest: digest("1"), ArtifactType: "application/vnd.ptah.schema", Verified: true, ResolvedAt: at(-5), VerifiedAt: at(-5)},
		Target: &v1alpha1.TargetStatus{
			Engine: v1alpha1.EnginePostgreSQL, CoordinationDigest: digest("2"), IdentityDigest: digest("3"), ServerVersion: "17.5", LastObservedAt: at(-5),
			HighestDriftSeverity: "destructive", DriftFindingCount: 3,
			DriftFindings: []v1alpha1.DriftFindingStatus{{Category: "tables_added", Count: 2, Severity: "safe"}, {Category: "columns_removed", Count: 1, Severity: "destructive"}},
		},
		Plan: &v1alpha1.CurrentPlanStatus{
			ImmutableObjectReference: v1alpha1.ImmutableObjectReference{Name: "ptah-plan-0123456789abcdef01234567", UID: "plan-uid"},
			Fingerprint:              digest("4"), ContentDigest: digest("5"), Size: 812, StatementCount: 3, Destructive: true, PrivilegeChanges: []string{"Grant"}, CreatedAt: *at(-5),
		},
		LastSuccessfulReconciliation: at(-5), NextReconciliationTime: at(5),
		Conditions: []metav1.Condition{
			said(v1alpha1.ConditionReady, "False", v1alpha1.ReasonAwaitingApproval, "Plan ptah-plan-0123456789abcdef01234567 with 3 statements waits for an approval."),
			said(v1alpha1.ConditionStalled, "False", v1alpha1.ReasonAwaitingApproval, "It waits."),
			said(v1alpha1.ConditionDriftDetected, "True", v1alpha1.ReasonScopedChanges, "The managed scope differs from the artifact."),
		},
	}
	return s
}

// fresh is a resource that the operator did not see yet.
func fresh() *v1alpha1.PtahSchema {
	s := waiting()
	s.Status, s.CreationTimestamp = v1alpha1.PtahSchemaStatus{}, *at(0)
	return s
}

func setReady(s *v1alpha1.PtahSchema, status string, reason v1alpha1.Reason, message string) {
	s.Status.Conditions[0] = said(v1alpha1.ConditionReady, status, reason, message)
}

// unknownOutcome is a resource that owes a proof.
func unknownOutcome() *v1alpha1.PtahSchema {
	s := waiting()
	s.Status.Phase = v1alpha1.PhaseVerifyingConvergence
	setReady(s, "False", v1alpha1.ReasonApplyOutcomeUnknown, "An Apply may or may not have changed the database; it is read again and nothing is replayed.")
	s.Status.PendingObservation = &v1alpha1.PendingObservationStatus{
		Outcome: v1alpha1.OutcomeUnknown, ApplyJobName: "ptah-apply-orders-0011223344556677", ApplyPodCount: 2, ObserveAfter: at(9), Plan: *s.Status.Plan,
	}
	s.Status.Plan = nil
	s.Status.Target.DriftFindings, s.Status.Target.DriftFindingCount = nil, 0
	s.Status.Conditions[2] = said(v1alpha1.ConditionDriftDetected, "Unknown", v1alpha1.ReasonDesiredStateChanged, "Not read.")
	return s
}

// failed is a resource in a realm whose database refuses the password.
func failed() *v1alpha1.PtahSchema {
	s := waiting()
	s.Spec.Target.CoordinationKey, s.Spec.Target.RealmRef = "", &v1alpha1.RealmReference{Name: "orders"}
	s.Status.Phase, s.Status.Plan, s.Status.FailedAttempts, s.Status.TargetBusySince = v1alpha1.PhaseFailed, nil, 3, at(-1)
	s.Status.Source.Verified = false
	s.Status.Applied = &v1alpha1.AppliedStatus{PlanRef: v1alpha1.ImmutableObjectReference{Name: "ptah-plan-before"}, CompletedAt: *at(-600)}
	s.Status.ActiveOperation = &v1alpha1.ActiveOperationStatus{Type: v1alpha1.OperationRefresh, JobName: "ptah-refresh-orders-0011223344556677", StartedAt: *at(-1), DispatchStarted: true}
	setReady(s, "False", v1alpha1.ReasonAuthenticationFailed, "The database refused the credential in key url of Secret orders-database; correct the user or password there.")
	s.Status.Conditions = append(s.Status.Conditions, said(v1alpha1.ConditionReconciliationFailed, "True", v1alpha1.ReasonAuthenticationFailed, "It is tried again \x1b[2K every 30s."))
	s.Status.Conditions[2].ObservedGeneration = 1
	return s
}

func TestAPersonReadsTheStateOn80Columns(t *testing.T) {
	for name, schema := range map[string]*v1alpha1.PtahSchema{
		"waiting.txt": waiting(), "unknown.txt": unknownOutcome(), "failed.txt": failed(), "new.txt": fresh(),
	} {
		t.Run(name, func(t *testing.T) {
			var page bytes.Buffer
			if err := Of(schema, now).Text(&page); err != nil {
				t.Fatal(err)
			}
			golden(t, name, page.String())
			for line := range strings.Lines(page.String()) {
				if columns := utf8.RuneCountInString(strings.TrimRight(line, "\n")); columns > 80 && !strings.Contains(line, "(of an older generation)") {
					t.Errorf("%d columns: %q", columns, line)
				}
			}
			if strings.Contains(page.String(), "\x1b") {
				t.Error("a control character reaches the terminal")
			}
		})
	}
}

// golden compares with a file; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

func TestProgramsReadTheSameAsJSON(t *testing.T) {
	var page bytes.Buffer
	if err := Of(failed(), now).JSON(&page); err != nil {
		t.Fatal(err)
	}
	golden(t, "failed.json", page.String())
	decoder := json.NewDecoder(&page)
	decoder.DisallowUnknownFields()
	back := View{}
	if err := decoder.Decode(&back); err != nil || back.Reason != "AuthenticationFailed" || len(back.Conditions) != 4 || back.Conditions[2].Current {
		t.Errorf("%v: %+v", err, back)
	}
}

func TestWhatAPersonShouldDoNext(t *testing.T) {
	for name, test := range map[string]struct {
		edit    func(*v1alpha1.PtahSchema)
		needed  bool
		action  string
		command string
	}{
		"approve": {func(*v1alpha1.PtahSchema) {}, true, "approve it", "kubectl ptah plan orders -n shop"},
		"wait after an approval": {func(s *v1alpha1.PtahSchema) {
			s.Status.Plan.Approval = &v1alpha1.PlanApprovalStatus{Name: "go"}
		}, false, "Wait: the plan is approved", ""},
		"nothing in sync": {func(s *v1alpha1.PtahSchema) { setReady(s, "True", v1alpha1.ReasonInSync, "It matches.") }, false, "Nothing.", ""},
		"permit destruction": {func(s *v1alpha1.PtahSchema) {
			setReady(s, "False", v1alpha1.ReasonDestructiveChangesDisabled, "It destroys.")
			s.Status.Conditions[1].Status = "True"
		}, true, "Set spec.policy.allowDestructive", "kubectl ptah plan orders -n shop"},
		"correct a Secret": {func(s *v1alpha1.PtahSchema) {
			setReady(s, "False", v1alpha1.ReasonAuthenticationFailed, "It refused.")
			s.Status.FailedAttempts = 1
		}, true, "Correct the Secret that the message names", ""},
		"wait for a new spec to be seen": {func(s *v1alpha1.PtahSchema) { s.Generation++ }, false, "did not look at this generation", "kubectl get deployments"},
		"look for the operator":          {func(s *v1alpha1.PtahSchema) { s.Status.Conditions = nil }, true, "did not look at this generation", "kubectl get deployments"},
		"a refresh that is overdue":      {func(s *v1alpha1.PtahSchema) { s.Status.NextReconciliationTime = at(-3) }, true, "was due at 2026-11-29T11:57:00Z and did not start", "kubectl get deployments"},
		"overdue and suspended": {func(s *v1alpha1.PtahSchema) {
			s.Status.NextReconciliationTime, s.Spec.Suspend = at(-3), true
			setReady(s, "False", v1alpha1.ReasonSuspended, "Suspended.")
		}, false, "Remove spec.suspend", ""},
		"a reason of a newer operator": {func(s *v1alpha1.PtahSchema) { setReady(s, "False", "Odd", "Odd.") }, true, "does not know the reason Odd", ""},
		"deletion":                     {func(s *v1alpha1.PtahSchema) { s.DeletionTimestamp = at(0) }, false, "it is being deleted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			schema := waiting()
			test.edit(schema)
			next := Of(schema, now).Next
			if next.Needed != test.needed || !strings.Contains(next.Action, test.action) || !strings.HasPrefix(next.Command, test.command) || (test.command == "") != (next.Command == "") {
				t.Errorf("%+v", next)
			}
		})
	}
}

func TestASchemaThatDoesNotExistIsNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(waiting()).Build()
	if _, err := Fetch(t.Context(), reader, "bank", "orders", now); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), `PtahSchema "orders" does not exist in namespace "bank"`) {
		t.Errorf("error %v", err)
	}
	view, err := Fetch(t.Context(), reader, "shop", "orders", now)
	if err != nil || view.Phase != "AwaitingApproval" {
		t.Errorf("%v, %+v", err, view)
	}
}
