package dataplane

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
)

// told waits until a condition of the current generation has a status and a reason and says some words.
func told(ctx context.Context, one *subject.Subject, kind string, status metav1.ConditionStatus, reason v1alpha1.Reason, words string) *v1alpha1.PtahSchema {
	one.T.Helper()
	now, _ := one.Await(ctx, kind+" "+string(status)+" because of "+string(reason)+": "+words, func(now *v1alpha1.PtahSchema) bool {
		return bench.Settled(now) && bench.Condition(now, kind, status, reason) && strings.Contains(message(now, kind), words)
	})
	one.Observe("what "+kind+" says of "+words, message(now, kind))
	return now
}

func message(schema *v1alpha1.PtahSchema, kind string) string {
	if condition := meta.FindStatusCondition(schema.Status.Conditions, kind); condition != nil {
		return condition.Message
	}
	return ""
}

// refused checks that the API server refused something, for the reason that it should have.
func refused(s *bench.Scenario, what string, err error, words string) {
	s.T.Helper()
	said := ""
	if err != nil {
		said = err.Error()
	}
	s.Observe("refusal of "+what, said)
	s.Check("refused: "+what, refusal(err, words), "the API server must refuse it and say %q, it said %q", words, said)
}

// refusal is true for an answer that refuses and says some words. An answer that nobody could get is no refusal.
func refusal(err error, words string) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && strings.Contains(err.Error(), words)
}

// answered waits until the product's webhooks answer every request, after their managers were replaced: a node goes on
// for a moment to send connections to those that are gone. Nothing is stored meanwhile.
func answered(ctx context.Context, s *bench.Scenario, approval *v1alpha1.PtahSchemaApproval) {
	s.T.Helper()
	const inARow = 10
	good := 0
	for end := time.Now().Add(time.Minute); good < inARow; {
		err := s.Bench.Client.Create(ctx, approval.DeepCopy(), client.DryRunAll)
		if good++; err != nil && strings.Contains(err.Error(), "failed calling webhook") {
			good = 0
			s.Need("the webhooks answer again", subject.ErrorUnless(time.Now().Before(end), err.Error()))
			time.Sleep(200 * time.Millisecond)
		}
	}
}
