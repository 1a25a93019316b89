package schema

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/realm"
)

// maxFindings is how many drift categories a status lists.
const maxFindings = 64

// verdict is what the result of a refresh establishes.
type verdict struct {
	// source and target are set as far as the chain came.
	source *ptahv1.SchemaSourceStatus
	target *ptahv1.TargetStatus
	// failure is set when the chain ended early; otherwise the database is converged or plan says what would change.
	failure   *failure
	converged bool
	// drift says that the reading showed differences, whether or not a plan exists.
	drift bool
	plan  *report.SchemaPlan
	// document is the decoded plan, nil where the plan is held already.
	document *report.Plan
	bytes    []byte
}

// question is what a result is held against.
type question struct {
	claim  *ptahv1.ActiveOperationStatus
	inputs inputs
	// held is the content digest that was passed as stored already, "" for none.
	held string
	// proven is what was passed as the last proof of convergence, nil for none.
	proven *ptahv1.ConvergedStatus
	// resolvedBefore says that the source was resolved at some time.
	resolvedBefore bool
	now            time.Time
}

// judge turns a result document, which is consistent in itself, into a verdict. Evidence that does not fit the
// question is a failure: it is never repaired.
func judge(q question, document *result.Document) verdict {
	v := verdict{}
	if failed := document.Failed(); failed != nil {
		v.failure = diagnose(&document.Steps[len(document.Steps)-1], q.claim, q.resolvedBefore)
	}
	if problem := v.judgeSource(q, document); problem != "" {
		return misfit(problem)
	}
	if problem := v.judgeTarget(q, document); problem != "" {
		return misfit(problem)
	}
	if v.failure != nil {
		return v
	}
	if problem := v.judgePlan(q, document); problem != "" {
		return misfit(problem)
	}
	return v
}

func misfit(problem string) verdict {
	return verdict{failure: &failure{
		condition: ptahv1.ConditionPlanReady, status: corev1.ConditionUnknown, reason: ptahv1.ReasonOperationFailed,
		stage: stageController, message: "The result of the refresh cannot be used: " + problem + ".",
	}}
}

func (v *verdict) judgeSource(q question, document *result.Document) string {
	resolve := document.Resolve
	if resolve == nil || resolve.Outcome != report.OutcomeFound {
		return ""
	}
	if !report.IsDigest(resolve.Digest) || resolve.PinnedReference == "" {
		return "Resolve gives no digest"
	}
	at := metav1.NewTime(q.now)
	source := &ptahv1.SchemaSourceStatus{
		RequestedReference: q.claim.Source.RequestedReference, ResolvedReference: resolve.PinnedReference,
		Digest: resolve.Digest, MediaType: resolve.MediaType, ArtifactType: resolve.ArtifactType, Size: resolve.Size,
		ResolvedAt: &at,
	}
	if verify := document.Verify; verify != nil && verify.Outcome == report.OutcomeFound {
		if verify.Digest != resolve.Digest {
			return "Verify is about another artifact than Resolve"
		}
		if verify.PolicyDigest != q.claim.Source.VerificationPolicy.Digest {
			return "Verify used another policy than the claimed one"
		}
		source.Verified, source.VerifiedAt = true, &at
		source.VerificationPolicyUID = q.claim.Source.VerificationPolicy.UID
		source.VerificationPolicyDigest = verify.PolicyDigest
	}
	v.source = source
	return ""
}

func (v *verdict) judgeTarget(q question, document *result.Document) string {
	observe, planned := document.Observe, document.Plan
	if planned == nil && observe == nil {
		return ""
	}
	identity := document.TargetIdentityDigest
	if q.inputs.targetIdentity != "" && identity != "" && identity != q.inputs.targetIdentity {
		return "it read another database than the one that must be proven"
	}
	at := metav1.NewTime(q.now)
	target := &ptahv1.TargetStatus{
		Engine: q.claim.Target.Engine, CoordinationDigest: q.claim.CoordinationDigest, IdentityDigest: identity,
		LastObservedAt: &at,
	}
	findings, dialect := []report.Finding(nil), ""
	switch {
	case planned != nil && (planned.Outcome == report.OutcomeChanges || planned.Outcome == report.OutcomeNoChanges):
		target.ServerVersion, target.StateFingerprint = planned.ServerVersion, planned.FromFingerprint
		target.HighestDriftSeverity, findings, dialect = string(planned.HighestSeverity), planned.Findings, planned.Dialect
		v.drift = planned.Outcome == report.OutcomeChanges
	case observe != nil && (observe.Outcome == report.OutcomeChanges || observe.Outcome == report.OutcomeNoChanges):
		target.ServerVersion, target.StateFingerprint = observe.ServerVersion, observe.Fingerprint
		target.HighestDriftSeverity, findings, dialect = string(observe.HighestSeverity), observe.Findings, observe.Dialect
		v.drift = observe.Outcome == report.OutcomeChanges
	default:
		return ""
	}
	if !report.IsDigest(identity) || !report.IsDigest(target.StateFingerprint) {
		return "it does not say which database was read, or in what state"
	}
	if engine, err := realm.CanonicalEngine(string(q.claim.Target.Engine)); err != nil || dialect != engine {
		return "it read a database of another engine than spec.target.engine"
	}
	setFindings(target, findings)
	v.target = target
	return ""
}

func setFindings(target *ptahv1.TargetStatus, findings []report.Finding) {
	for _, finding := range findings {
		if finding.Count > 0 {
			target.DriftFindingCount += int32(finding.Count)
			target.DriftFindings = append(target.DriftFindings, ptahv1.DriftFindingStatus{
				Category: finding.Category, Count: int32(finding.Count), Severity: string(finding.Severity),
			})
		}
	}
	if len(target.DriftFindings) > maxFindings {
		target.DriftFindings = slices.Clone(target.DriftFindings[:maxFindings])
		target.DriftFindingsTruncated = true
	}
}

func (v *verdict) judgePlan(q question, document *result.Document) string {
	planned := document.Plan
	switch {
	case v.source == nil || !v.source.Verified:
		return "the artifact was not verified"
	case planned == nil || v.target == nil:
		return "it has no plan step"
	case planned.Outcome == report.OutcomeNoChanges:
		if planned.Unchanged && !q.matchesProof(v.source.Digest, planned.FromFingerprint, document.TargetIdentityDigest) {
			return "it calls the database unchanged since a proof that does not match"
		}
		v.converged, v.plan = true, planned
		return ""
	case planned.Outcome != report.OutcomeChanges:
		return fmt.Sprintf("Plan ended in %q without a problem", planned.Outcome)
	case !report.IsDigest(planned.PlanDigest) || !report.IsDigest(planned.ToFingerprint) || planned.Statements < 1 || planned.PlanSize < 1:
		return "its plan is not described"
	}
	v.plan = planned
	if document.PlanHeld {
		if q.held == "" || planned.PlanDigest != q.held {
			return "it says that a plan is stored which is not"
		}
		return ""
	}
	decoded, err := report.DecodePlan(document.PlanBytes)
	if err != nil {
		return err.Error()
	}
	v.document, v.bytes = decoded, document.PlanBytes
	return checkPlan(q, planned, decoded, int64(len(document.PlanBytes)))
}

// checkPlan holds the report about a plan, and the policy, against the plan itself.
func checkPlan(q question, planned *report.SchemaPlan, decoded *report.Plan, size int64) string {
	exclude := make([]string, 0, len(q.inputs.policy.Exclude))
	for _, selector := range q.inputs.policy.Exclude {
		exclude = append(exclude, string(selector))
	}
	slices.Sort(exclude)
	planExclude := slices.Sorted(slices.Values(decoded.Exclude))
	switch {
	case planned.PlanSize != size:
		return "the plan has another size than its report says"
	case planned.Statements != len(decoded.Statements) || planned.Destructive != decoded.Destructive:
		return "the plan has other statements than its report says"
	case planned.FromFingerprint != decoded.FromFingerprint || planned.ToFingerprint != decoded.ToFingerprint:
		return "the plan starts from or leads to another state than its report says"
	case planned.Dialect != decoded.Dialect:
		return "the plan is for another dialect than its report says"
	case string(decoded.TransactionMode) != q.inputs.policy.TransactionMode:
		return "the plan has another transaction mode than the policy"
	case !slices.Equal(planExclude, exclude):
		return "the plan has another scope than the policy"
	}
	return ""
}

func (q *question) matchesProof(artifact, state, target string) bool {
	return q.proven != nil && q.proven.ArtifactDigest == artifact && q.proven.StateFingerprint == state &&
		q.proven.TargetIdentityDigest == target
}
