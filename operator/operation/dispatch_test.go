package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
)

var errNoTrust = errors.New("no such file")

func writer(t *testing.T, answer func(ctx context.Context) error) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := batchv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if answer != nil {
				if err := answer(ctx); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, options...)
		},
	}).Build()
}

func aJob() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "n"}}
}

func TestOnlyAnAnswerThatProvesItIsARefusal(t *testing.T) {
	jobs, kind := batchv1.Resource("jobs"), schema.GroupKind{Group: "batch", Kind: "Job"}
	for name, test := range map[string]struct {
		err  error
		want Dispatched
	}{
		"stored":                     {nil, Created},
		"forbidden":                  {apierrors.NewForbidden(jobs, "j", errors.New("no")), Refused},
		"over quota":                 {apierrors.NewForbidden(jobs, "j", errors.New("exceeded quota")), Refused},
		"invalid":                    {apierrors.NewInvalid(kind, "j", nil), Refused},
		"bad request":                {apierrors.NewBadRequest("no"), Refused},
		"unauthorized":               {apierrors.NewUnauthorized("no"), Refused},
		"no such namespace":          {apierrors.NewNotFound(corev1.Resource("namespaces"), "n"), Refused},
		"too large":                  {apierrors.NewRequestEntityTooLargeError("no"), Refused},
		"rate limited":               {apierrors.NewTooManyRequests("later", 1), Refused},
		"webhook unreachable":        {apierrors.NewInternalError(errors.New(`failed calling webhook "x": timeout`)), Refused},
		"webhook denies with a 409":  {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Message: `admission webhook "x" denied the request: no`}}, Refused},
		"already exists":             {apierrors.NewAlreadyExists(jobs, "j"), Uncertain},
		"server timeout":             {apierrors.NewServerTimeout(jobs, "create", 1), Uncertain},
		"gateway timeout":            {apierrors.NewTimeoutError("slow", 1), Uncertain},
		"unavailable":                {apierrors.NewServiceUnavailable("leaving"), Uncertain},
		"internal error of etcd":     {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), Uncertain},
		"quota conflict":             {apierrors.NewConflict(corev1.Resource("resourcequotas"), "q", errors.New("changed")), Uncertain},
		"connection reset":           {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, Uncertain},
		"connection refused":         {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, Uncertain},
		"end of file":                {io.ErrUnexpectedEOF, Uncertain},
		"deadline":                   {context.DeadlineExceeded, Uncertain},
		"a text that only sounds so": {errors.New("denied the request"), Uncertain},
	} {
		got, err := Create(context.Background(), writer(t, func(context.Context) error { return test.err }), aJob())
		if got != test.want {
			t.Errorf("%s is %d instead of %d: %v", name, got, test.want, err)
		}
		if (err == nil) != (test.want == Created) {
			t.Errorf("%s has error %v", name, err)
		}
	}
}

func TestAWrappedRefusalIsStillOne(t *testing.T) {
	if !DefinitelyNotStored(fmt.Errorf("create: %w", apierrors.NewForbidden(batchv1.Resource("jobs"), "j", errors.New("no")))) {
		t.Error("wrapping hides a refusal")
	}
}

func TestACreateIsNotStartedOnACancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sent := false
	got, err := Create(ctx, writer(t, func(context.Context) error { sent = true; return nil }), aJob())
	if got != NotStarted || err == nil || sent {
		t.Errorf("%d, %v, sent %v", got, err, sent)
	}
}

func TestAStartedCreateGoesOnWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	got, err := Create(ctx, writer(t, func(inner context.Context) error {
		cancel()
		if _, bounded := inner.Deadline(); !bounded {
			t.Error("the request has no bound")
		}
		return inner.Err()
	}), aJob())
	if got != Created || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

func TestAJobHasFinishedOnlyByItsFinalCondition(t *testing.T) {
	for name, test := range map[string]struct {
		conditions []batchv1.JobCondition
		want       bool
	}{
		"no condition":         {nil, false},
		"complete":             {[]batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}, true},
		"failed":               {[]batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "DeadlineExceeded"}}, true},
		"about to fail":        {[]batchv1.JobCondition{{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue}}, false},
		"about to complete":    {[]batchv1.JobCondition{{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}}, false},
		"failed is false":      {[]batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}}, false},
		"suspended":            {[]batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue}}, false},
		"completion is denied": {[]batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionUnknown}}, false},
	} {
		if got, _ := Finished(&batchv1.Job{Status: batchv1.JobStatus{Conditions: test.conditions}}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAResultOfAnotherOperationIsRefused(t *testing.T) {
	claim := &ptahv1.ActiveOperationStatus{Type: ptahv1.OperationApply, ID: "sha256:a"}
	for _, test := range []struct {
		document result.Document
		fits     bool
	}{
		{result.Document{Operation: "Apply", OperationID: "sha256:a"}, true},
		{result.Document{Operation: "Refresh", OperationID: "sha256:a"}, false},
		{result.Document{Operation: "Apply", OperationID: "sha256:b"}, false},
	} {
		if err := CheckOperation(&test.document, claim); (err == nil) != test.fits || err != nil && !errors.Is(err, ErrInvalidResult) {
			t.Errorf("%+v: %v", test.document, err)
		}
	}
}
