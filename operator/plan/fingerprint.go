package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan/report"
)

// bound is everything that an approval of a plan authorises. Its JSON form is the fingerprint contract: a changed
// field is a new contract version.
type bound struct {
	ContractVersion          int32    `json:"contractVersion"`
	SchemaUID                string   `json:"schemaUID"`
	ContentDigest            string   `json:"contentDigest"`
	ArtifactDigest           string   `json:"artifactDigest"`
	CoordinationDigest       string   `json:"coordinationDigest"`
	TargetIdentityDigest     string   `json:"targetIdentityDigest"`
	ActualStateFingerprint   string   `json:"actualStateFingerprint"`
	DesiredStateFingerprint  string   `json:"desiredStateFingerprint"`
	PolicyFingerprint        string   `json:"policyFingerprint"`
	VerificationPolicyUID    string   `json:"verificationPolicyUID"`
	VerificationPolicyDigest string   `json:"verificationPolicyDigest"`
	ExecutionBindingID       string   `json:"executionBindingID"`
	ControllerStateVersion   int32    `json:"controllerStateVersion"`
	PtahVersion              string   `json:"ptahVersion"`
	ExecutorImage            string   `json:"executorImage"`
	RunnerProtocolVersion    int32    `json:"runnerProtocolVersion"`
	Destructive              bool     `json:"destructive"`
	PrivilegeChanges         []string `json:"privilegeChanges"`
	StatementCount           int32    `json:"statementCount"`
}

// Fingerprint is the digest of everything that spec binds: the schema by UID and not by name, the bytes by digest and
// not by chunk, the execution by its compared components. spec.Fingerprint, spec.Chunks and spec.CreatedBy take no
// part. It refuses a spec in which a bound value is missing.
func Fingerprint(spec ptahv1.PtahSchemaPlanSpec) (string, error) {
	changes := []string{}
	for _, change := range spec.PrivilegeChanges {
		changes = append(changes, string(change))
	}
	slices.Sort(changes)
	b := bound{
		ContractVersion:          spec.ContractVersion,
		SchemaUID:                spec.SchemaRef.UID,
		ContentDigest:            string(spec.ContentDigest),
		ArtifactDigest:           string(spec.ArtifactDigest),
		CoordinationDigest:       string(spec.CoordinationDigest),
		TargetIdentityDigest:     string(spec.TargetIdentityDigest),
		ActualStateFingerprint:   string(spec.ActualStateFingerprint),
		DesiredStateFingerprint:  string(spec.DesiredStateFingerprint),
		PolicyFingerprint:        string(spec.PolicyFingerprint),
		VerificationPolicyUID:    spec.VerificationPolicyUID,
		VerificationPolicyDigest: string(spec.VerificationPolicyDigest),
		ExecutionBindingID:       spec.ExecutionBindingID,
		ControllerStateVersion:   spec.ControllerStateVersion,
		PtahVersion:              spec.PtahVersion,
		ExecutorImage:            spec.ExecutorImage,
		RunnerProtocolVersion:    spec.RunnerProtocolVersion,
		Destructive:              spec.Destructive,
		PrivilegeChanges:         slices.Compact(changes),
		StatementCount:           spec.StatementCount,
	}
	if err := b.complete(); err != nil {
		return "", fmt.Errorf("plan fingerprint: %w", err)
	}
	return CanonicalDigest(b)
}

func (b *bound) complete() error {
	if b.ContractVersion != ptahv1.PlanContractVersion {
		return fmt.Errorf("contract version %d is not %d", b.ContractVersion, ptahv1.PlanContractVersion)
	}
	for _, digest := range []struct{ name, value string }{
		{"contentDigest", b.ContentDigest},
		{"artifactDigest", b.ArtifactDigest},
		{"coordinationDigest", b.CoordinationDigest},
		{"targetIdentityDigest", b.TargetIdentityDigest},
		{"actualStateFingerprint", b.ActualStateFingerprint},
		{"desiredStateFingerprint", b.DesiredStateFingerprint},
		{"policyFingerprint", b.PolicyFingerprint},
		{"verificationPolicyDigest", b.VerificationPolicyDigest},
	} {
		if !report.IsDigest(digest.value) {
			return fmt.Errorf("%s is not a sha256 digest", digest.name)
		}
	}
	for _, text := range []struct{ name, value string }{
		{"schemaRef.uid", b.SchemaUID},
		{"verificationPolicyUID", b.VerificationPolicyUID},
		{"executionBindingID", b.ExecutionBindingID},
		{"ptahVersion", b.PtahVersion},
		{"executorImage", b.ExecutorImage},
	} {
		if text.value == "" {
			return fmt.Errorf("%s is empty", text.name)
		}
	}
	if b.ControllerStateVersion < 1 || b.RunnerProtocolVersion < 1 {
		return errors.New("controllerStateVersion and runnerProtocolVersion must be at least 1")
	}
	if b.StatementCount < 1 {
		return errors.New("statementCount must be at least 1")
	}
	return nil
}

// policyBound is the reconciliation policy as plans are bound to it.
type policyBound struct {
	ContractVersion  int      `json:"contractVersion"`
	Apply            string   `json:"apply"`
	AllowDestructive bool     `json:"allowDestructive"`
	DriftSeverity    string   `json:"driftSeverity"`
	Exclude          []string `json:"exclude"`
	LockTimeout      string   `json:"lockTimeout"`
	TransactionMode  string   `json:"transactionMode"`
	ProtectedTables  []string `json:"protectedTables"`
}

// transactionModes are what a policy that names no transaction mode means, by engine.
var transactionModes = map[ptahv1.DatabaseEngine]report.TransactionMode{
	ptahv1.EnginePostgreSQL: report.TransactionFile,
	ptahv1.EngineMySQL:      report.TransactionNone,
}

// EffectivePolicy is a policy with what it leaves to the engine filled in. Applied twice it changes nothing.
func EffectivePolicy(engine ptahv1.DatabaseEngine, policy ptahv1.SchemaPolicy) ptahv1.SchemaPolicy {
	if policy.TransactionMode == "" {
		policy.TransactionMode = string(transactionModes[engine])
	}
	return policy
}

// PolicyFingerprint is the digest of the policy that an engine carries out. The order of its sets does not matter;
// every field does, so that an edited policy retires a plan that waits for an approval. Writing down what the engine
// means anyway is no edit.
func PolicyFingerprint(engine ptahv1.DatabaseEngine, policy ptahv1.SchemaPolicy) (string, error) {
	policy = EffectivePolicy(engine, policy)
	return CanonicalDigest(policyBound{
		ContractVersion:  1,
		Apply:            string(policy.Apply),
		AllowDestructive: policy.AllowDestructive,
		DriftSeverity:    policy.DriftSeverity,
		Exclude:          sortedTexts(policy.Exclude),
		LockTimeout:      policy.LockTimeout.Duration.String(),
		TransactionMode:  policy.TransactionMode,
		ProtectedTables:  sortedTexts(policy.ProtectedTables),
	})
}

func sortedTexts[T ~string](values []T) []string {
	texts := make([]string, 0, len(values))
	for _, value := range values {
		texts = append(texts, string(value))
	}
	slices.Sort(texts)
	return texts
}

// Name is the name of the plan with a fingerprint: "ptah-plan-" and the first 24 hex digits.
func Name(fingerprint string) string {
	hexDigits := strings.TrimPrefix(fingerprint, "sha256:")
	return "ptah-plan-" + hexDigits[:min(len(hexDigits), 24)]
}

// ChunkName is the name of chunk index of a plan.
func ChunkName(planName string, index int) string {
	return fmt.Sprintf("%s-%03d", planName, index)
}
