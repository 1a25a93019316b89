package plan

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan/report"
)

func digestOf(text string) ptahv1.Digest { return ptahv1.Digest(report.Digest([]byte(text))) }

func goodSpec() ptahv1.PtahSchemaPlanSpec {
	return ptahv1.PtahSchemaPlanSpec{
		ContractVersion: 1, SchemaRef: ptahv1.ImmutableObjectReference{Name: "orders", UID: "uid-1"},
		ContentDigest: digestOf("bytes"), ArtifactDigest: digestOf("artifact"), CoordinationDigest: digestOf("realm"),
		TargetIdentityDigest: digestOf("target"), ActualStateFingerprint: digestOf("from"), DesiredStateFingerprint: digestOf("to"),
		PolicyFingerprint: digestOf("policy"), VerificationPolicyUID: "uid-2", VerificationPolicyDigest: digestOf("verification"),
		ExecutionBindingID: "v1-" + strings.Repeat("0", 32), ControllerStateVersion: 1, PtahVersion: "1.0.0",
		ExecutorImage: "e@sha256:" + strings.Repeat("a", 64), RunnerProtocolVersion: 1, Dialect: "postgresql",
		PrivilegeChanges: []ptahv1.PrivilegeChange{"Grant", "Revoke"}, StatementCount: 2,
	}
}

func mustFingerprint(t *testing.T, spec ptahv1.PtahSchemaPlanSpec) string {
	t.Helper()
	fingerprint, err := Fingerprint(spec)
	if err != nil {
		t.Fatal(err)
	}
	return fingerprint
}

func TestTheFingerprintChangesWithEverythingThatIsBound(t *testing.T) {
	base := mustFingerprint(t, goodSpec())
	for name, change := range map[string]func(*ptahv1.PtahSchemaPlanSpec){
		"schema UID":        func(s *ptahv1.PtahSchemaPlanSpec) { s.SchemaRef.UID = "uid-9" },
		"content":           func(s *ptahv1.PtahSchemaPlanSpec) { s.ContentDigest = digestOf("x") },
		"artifact":          func(s *ptahv1.PtahSchemaPlanSpec) { s.ArtifactDigest = digestOf("x") },
		"realm":             func(s *ptahv1.PtahSchemaPlanSpec) { s.CoordinationDigest = digestOf("x") },
		"target":            func(s *ptahv1.PtahSchemaPlanSpec) { s.TargetIdentityDigest = digestOf("x") },
		"actual state":      func(s *ptahv1.PtahSchemaPlanSpec) { s.ActualStateFingerprint = digestOf("x") },
		"desired state":     func(s *ptahv1.PtahSchemaPlanSpec) { s.DesiredStateFingerprint = digestOf("x") },
		"policy":            func(s *ptahv1.PtahSchemaPlanSpec) { s.PolicyFingerprint = digestOf("x") },
		"verification UID":  func(s *ptahv1.PtahSchemaPlanSpec) { s.VerificationPolicyUID = "uid-9" },
		"verification file": func(s *ptahv1.PtahSchemaPlanSpec) { s.VerificationPolicyDigest = digestOf("x") },
		"epoch":             func(s *ptahv1.PtahSchemaPlanSpec) { s.ExecutionBindingID = "v1-" + strings.Repeat("1", 32) },
		"state version":     func(s *ptahv1.PtahSchemaPlanSpec) { s.ControllerStateVersion = 2 },
		"ptah version":      func(s *ptahv1.PtahSchemaPlanSpec) { s.PtahVersion = "1.0.1" },
		"executor":          func(s *ptahv1.PtahSchemaPlanSpec) { s.ExecutorImage = "e@sha256:" + strings.Repeat("b", 64) },
		"runner protocol":   func(s *ptahv1.PtahSchemaPlanSpec) { s.RunnerProtocolVersion = 2 },
		"destructive":       func(s *ptahv1.PtahSchemaPlanSpec) { s.Destructive = true },
		"privileges":        func(s *ptahv1.PtahSchemaPlanSpec) { s.PrivilegeChanges = s.PrivilegeChanges[:1] },
		"statements":        func(s *ptahv1.PtahSchemaPlanSpec) { s.StatementCount = 3 },
	} {
		spec := goodSpec()
		change(&spec)
		if mustFingerprint(t, spec) == base {
			t.Errorf("%s is not bound", name)
		}
	}
	for name, change := range map[string]func(*ptahv1.PtahSchemaPlanSpec){
		"schema name":         func(s *ptahv1.PtahSchemaPlanSpec) { s.SchemaRef.Name = "renamed" },
		"order of privileges": func(s *ptahv1.PtahSchemaPlanSpec) { s.PrivilegeChanges = []ptahv1.PrivilegeChange{"Revoke", "Grant"} },
		"who created it":      func(s *ptahv1.PtahSchemaPlanSpec) { s.CreatedBy.ControllerImage = "newer" },
		"chunks":              func(s *ptahv1.PtahSchemaPlanSpec) { s.Chunks = make([]ptahv1.PlanChunkReference, 3) },
	} {
		spec := goodSpec()
		change(&spec)
		if mustFingerprint(t, spec) != base {
			t.Errorf("%s is bound", name)
		}
	}
}

// The contract is what other programs compute: its text must not move by accident.
func TestTheFingerprintContractStaysTheSame(t *testing.T) {
	const want = "sha256:568d9d99db8b647ae199a4542996cb27bf9477cf18f441cb054e09e5c9873118"
	if got := mustFingerprint(t, goodSpec()); got != want {
		t.Errorf("fingerprint %s; a changed contract needs another contractVersion", got)
	}
}

func TestAFingerprintOfAnIncompleteSpecIsRefused(t *testing.T) {
	for name, change := range map[string]func(*ptahv1.PtahSchemaPlanSpec){
		"contract version": func(s *ptahv1.PtahSchemaPlanSpec) { s.ContractVersion = 2 },
		"no content":       func(s *ptahv1.PtahSchemaPlanSpec) { s.ContentDigest = "" },
		"a short digest":   func(s *ptahv1.PtahSchemaPlanSpec) { s.ArtifactDigest = "sha256:00" },
		"no schema":        func(s *ptahv1.PtahSchemaPlanSpec) { s.SchemaRef.UID = "" },
		"no epoch":         func(s *ptahv1.PtahSchemaPlanSpec) { s.ExecutionBindingID = "" },
		"no policy UID":    func(s *ptahv1.PtahSchemaPlanSpec) { s.VerificationPolicyUID = "" },
		"no version":       func(s *ptahv1.PtahSchemaPlanSpec) { s.PtahVersion = "" },
		"no executor":      func(s *ptahv1.PtahSchemaPlanSpec) { s.ExecutorImage = "" },
		"no state version": func(s *ptahv1.PtahSchemaPlanSpec) { s.ControllerStateVersion = 0 },
		"no statements":    func(s *ptahv1.PtahSchemaPlanSpec) { s.StatementCount = 0 },
	} {
		spec := goodSpec()
		change(&spec)
		if fingerprint, err := Fingerprint(spec); err == nil {
			t.Errorf("%s gives %s", name, fingerprint)
		}
	}
}

func TestEveryFieldOfAPolicyIsPartOfItsFingerprint(t *testing.T) {
	base := ptahv1.SchemaPolicy{Apply: ptahv1.ApplyOnApproval, DriftSeverity: "all", LockTimeout: metav1.Duration{Duration: time.Second}, TransactionMode: "file", Exclude: []ptahv1.ExcludeSelector{"a", "b"}}
	of := func(p ptahv1.SchemaPolicy) string {
		fingerprint, err := PolicyFingerprint(ptahv1.EnginePostgreSQL, p)
		if err != nil {
			t.Fatal(err)
		}
		return fingerprint
	}
	changed := map[string]ptahv1.SchemaPolicy{}
	for field, change := range map[string]func(*ptahv1.SchemaPolicy){
		"Apply":            func(p *ptahv1.SchemaPolicy) { p.Apply = ptahv1.ApplyNever },
		"AllowDestructive": func(p *ptahv1.SchemaPolicy) { p.AllowDestructive = true },
		"DriftSeverity":    func(p *ptahv1.SchemaPolicy) { p.DriftSeverity = "destructive" },
		"Exclude":          func(p *ptahv1.SchemaPolicy) { p.Exclude = []ptahv1.ExcludeSelector{"a"} },
		"LockTimeout":      func(p *ptahv1.SchemaPolicy) { p.LockTimeout.Duration = 2 * time.Second },
		"TransactionMode":  func(p *ptahv1.SchemaPolicy) { p.TransactionMode = "all" },
		"ProtectedTables":  func(p *ptahv1.SchemaPolicy) { p.ProtectedTables = []ptahv1.ProtectedTable{"t"} },
	} {
		p := base
		change(&p)
		changed[field] = p
		if of(p) == of(base) {
			t.Errorf("%s is not bound", field)
		}
	}
	if got := reflect.TypeOf(base).NumField(); got != len(changed) {
		t.Errorf("the policy has %d fields and %d are tested", got, len(changed))
	}
	turned := base
	turned.Exclude = []ptahv1.ExcludeSelector{"b", "a"}
	if of(turned) != of(base) {
		t.Error("the order of a set is bound")
	}
}

func TestAModeThatThePolicyLeavesOutIsTheEnginesOwn(t *testing.T) {
	const of = "the policy fingerprint of "
	fingerprint := func(engine ptahv1.DatabaseEngine, mode string) string {
		got, err := PolicyFingerprint(engine, ptahv1.SchemaPolicy{Apply: ptahv1.ApplyOnApproval, TransactionMode: mode})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if fingerprint(ptahv1.EnginePostgreSQL, "") != fingerprint(ptahv1.EnginePostgreSQL, "file") {
		t.Error(of + "PostgreSQL without a mode is not that of file")
	}
	if fingerprint(ptahv1.EngineMySQL, "") != fingerprint(ptahv1.EngineMySQL, "none") {
		t.Error(of + "MySQL without a mode is not that of none")
	}
	if fingerprint(ptahv1.EngineMySQL, "") == fingerprint(ptahv1.EnginePostgreSQL, "") {
		t.Error(of + "both engines is one, although they run in different modes")
	}
	policy := ptahv1.SchemaPolicy{TransactionMode: "all"}
	if got := EffectivePolicy(ptahv1.EngineMySQL, policy); got.TransactionMode != "all" {
		t.Errorf("what is written becomes %q", got.TransactionMode)
	}
}

func TestCanonicalJSONHasOneTextPerMeaning(t *testing.T) {
	type one struct {
		B string `json:"b"`
		A int    `json:"a"`
	}
	type other struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	first, err := CanonicalJSON(one{"<&>", 1})
	if err != nil {
		t.Fatal(err)
	}
	second, err := CanonicalJSON(other{1, "<&>"})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) || string(first) != `{"a":1,"b":"<&>"}` {
		t.Errorf("%s and %s", first, second)
	}
	if large, err := CanonicalJSON(map[string]int64{"n": 9007199254740993}); err != nil || string(large) != `{"n":9007199254740993}` {
		t.Errorf("%s, %v", large, err)
	}
	if _, err := CanonicalJSON(func() {}); err == nil {
		t.Error("a function has a JSON text")
	}
}

func TestAPlanIsCutAtExactSizes(t *testing.T) {
	for _, test := range []struct{ size, chunks, last int }{
		{1, 1, 1},
		{ptahv1.MaxChunkBytes, 1, ptahv1.MaxChunkBytes},
		{ptahv1.MaxChunkBytes + 1, 2, 1},
		{ptahv1.MaxPlanBytes, ptahv1.MaxPlanChunks, ptahv1.MaxChunkBytes},
	} {
		data := bytes.Repeat([]byte("x"), test.size)
		chunks, err := Split(data)
		if err != nil || len(chunks) != test.chunks || len(chunks[len(chunks)-1]) != test.last || !bytes.Equal(bytes.Join(chunks, nil), data) {
			t.Errorf("%d bytes: %d chunks, %v", test.size, len(chunks), err)
		}
	}
	for _, size := range []int{0, ptahv1.MaxPlanBytes + 1} {
		if _, err := Split(make([]byte, size)); err == nil {
			t.Errorf("%d bytes are cut", size)
		}
	}
}
