package receiver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

func TestADeliveredResultIsStoredThenAcknowledgedThenLoaded(t *testing.T) {
	for _, operation := range []string{delivery.OperationRefresh, delivery.OperationApply} {
		t.Run(operation, func(t *testing.T) {
			w := newWorld(t, operation)
			body := w.document(t)
			response := w.put(body)
			if response.Code != http.StatusOK {
				t.Fatalf("status %d: %s", response.Code, response.Body)
			}
			want := []string{"review", "get schema orders", "get job ptah-job", "get pod ptah-job-abcde", "create record " + completeName(delivery.Publication(w.id))}
			if !slices.Equal(w.requests, want) {
				t.Errorf("requests %v, want %v", w.requests, want)
			}
			records := w.records()
			if len(records) != 1 {
				t.Fatalf("%d records, want 1", len(records))
			}
			owner := records[0].OwnerReferences[0]
			if wantKind := map[string]string{delivery.OperationRefresh: "Job", delivery.OperationApply: "PtahSchema"}[operation]; owner.Kind != wantKind || owner.Controller != nil {
				t.Errorf("owner %+v, want a %s", owner, wantKind)
			}
			if labels := records[0].Labels; labels[v1alpha1.LabelSchema] != "orders" || labels[v1alpha1.LabelOperationID] != strings.Repeat("2", 16) {
				t.Errorf("labels %v", labels)
			}
			var receipt delivery.Receipt
			if err := json.Unmarshal(response.Body.Bytes(), &receipt); err != nil || receipt.Size != int64(len(body)) || receipt.Record != records[0].Name {
				t.Errorf("receipt %+v, %v", receipt, err)
			}
			w.requests = nil
			document, err := Load(context.Background(), w.client, "shop", Publication(w.id.UID, w.id.OperationID, w.id.JobUID))
			if err != nil || document.Failed().Message != "it did not work" {
				t.Errorf("loaded %+v, %v", document, err)
			}
			if len(w.requests) != 1 {
				t.Errorf("loading took %v", w.requests)
			}
		})
	}
}

func TestALargeResultIsStoredInChunksAndCountsOnlyWhenComplete(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	body := w.largeDocument(t)
	response := w.put(body)
	if response.Code != http.StatusOK {
		t.Fatalf("status %d: %s", response.Code, response.Body)
	}
	publication := delivery.Publication(w.id)
	want := []string{
		"review", "get schema orders", "get job ptah-job", "get pod ptah-job-abcde",
		"create record " + intentName(publication), "get record " + completeName(publication),
		"create record " + chunkName(publication, 0), "create record " + chunkName(publication, 1), "create record " + chunkName(publication, 2),
		"get schema orders", "get job ptah-job", "get pod ptah-job-abcde",
		"create record " + completeName(publication),
	}
	if !slices.Equal(w.requests, want) {
		t.Errorf("requests\n%s\nwant\n%s", strings.Join(w.requests, "\n"), strings.Join(want, "\n"))
	}
	for _, record := range w.records() {
		if len(record.Spec.Data) > v1alpha1.MaxChunkBytes {
			t.Errorf("record %s holds %d bytes", record.Name, len(record.Spec.Data))
		}
	}
	document, err := Load(context.Background(), w.client, "shop", publication)
	if err != nil || len(document.PlanBytes) < 900<<10 {
		t.Errorf("loaded %v", err)
	}
}

func TestTheLargestPlanIsDeliveredStoredAndServedAndOneByteMoreIsNot(t *testing.T) {
	largest := planOf(t, v1alpha1.MaxPlanBytes-len(planOf(t, 1))+1)
	if len(largest) != v1alpha1.MaxPlanBytes {
		t.Fatalf("the plan has %d bytes", len(largest))
	}
	w := newWorld(t, delivery.OperationRefresh)
	body, err := result.Encode(w.refreshOf(largest))
	if err != nil {
		t.Fatal(err)
	}
	if response := w.put(body); response.Code != http.StatusOK {
		t.Fatalf("status %d: %s", response.Code, response.Body)
	}
	document, err := Load(context.Background(), w.client, "shop", delivery.Publication(w.id))
	if err != nil || !bytes.Equal(document.PlanBytes, largest) {
		t.Fatalf("the largest plan does not come back: %v", err)
	}

	apply := newWorld(t, delivery.OperationApply)
	apply.publish(t, document.PlanBytes)
	response := apply.ask(http.MethodGet, apply.planPath(), nil)
	if response.Code != http.StatusOK || !bytes.Equal(response.Body.Bytes(), largest) {
		t.Errorf("the largest plan is not served: status %d, %d bytes", response.Code, response.Body.Len())
	}

	// One byte more: no runner can write it, and a receiver that gets it nevertheless refuses it.
	more := bytes.Replace(largest, []byte("xx'"), []byte("xxx'"), 1)
	if _, err := result.Encode(w.refreshOf(more)); err == nil || !strings.Contains(err.Error(), "larger than 8388608 bytes") {
		t.Errorf("a runner writes a plan of %d bytes: %v", len(more), err)
	}
	forged := bytes.Replace(body, []byte(base64.StdEncoding.EncodeToString(largest)), []byte(base64.StdEncoding.EncodeToString(more)), 1)
	forged = bytes.Replace(forged, []byte(report.Digest(largest)), []byte(report.Digest(more)), 1)
	refusing := newWorld(t, delivery.OperationRefresh)
	if response := refusing.put(forged); response.Code != http.StatusUnprocessableEntity || !strings.Contains(response.Body.String(), "larger than 8388608 bytes") || len(refusing.records()) != 0 {
		t.Errorf("status %d: %s, %d records", response.Code, response.Body, len(refusing.records()))
	}
}

func TestTheSameBytesGetTheSameReceiptAndOthersAConflict(t *testing.T) {
	for name, body := range map[string]func(*world, *testing.T) []byte{"small": (*world).document, "large": (*world).largeDocument} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, delivery.OperationRefresh)
			sent := body(w, t)
			first, again := w.put(sent), w.put(sent)
			if first.Code != http.StatusOK || again.Code != http.StatusOK || first.Body.String() != again.Body.String() {
				t.Errorf("first %d %s, again %d %s", first.Code, first.Body, again.Code, again.Body)
			}
			stored := len(w.records())
			other := []byte(strings.Replace(string(sent), "12:00:00Z", "12:00:01Z", 2))
			if response := w.put(other); response.Code != http.StatusConflict {
				t.Errorf("other bytes: status %d: %s", response.Code, response.Body)
			}
			if now := len(w.records()); now != stored {
				t.Errorf("%d records after the conflict, want %d", now, stored)
			}
		})
	}
}

func TestAnInterruptedDeliveryIsNoResultAndCanBeRepeated(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	body := w.largeDocument(t)
	publication := delivery.Publication(w.id)
	w.fail = func(request string) error {
		if request == "create record "+chunkName(publication, 1) {
			return errors.New("the API server went away")
		}
		return nil
	}
	if response := w.put(body); response.Code != http.StatusServiceUnavailable || response.Header().Get("Retry-After") != "1" {
		t.Fatalf("status %d, want 503 with Retry-After: %s", response.Code, response.Body)
	}
	if _, err := Load(context.Background(), w.client, "shop", publication); !errors.Is(err, ErrNoResult) {
		t.Errorf("half a result loads: %v", err)
	}
	w.fail = nil
	if response := w.put(body); response.Code != http.StatusOK {
		t.Fatalf("repeated: status %d: %s", response.Code, response.Body)
	}
	if _, err := Load(context.Background(), w.client, "shop", publication); err != nil {
		t.Error(err)
	}
}

func TestAClaimThatEndsDuringTheDeliveryGetsNoResult(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	body := w.largeDocument(t)
	publication := delivery.Publication(w.id)
	w.fail = func(request string) error {
		if request == "create record "+chunkName(publication, 2) {
			w.fail = nil
			w.mutex.Unlock()
			change(w, &v1alpha1.PtahSchema{}, "orders", func(s *v1alpha1.PtahSchema) { s.Status.ActiveOperation = nil })
			w.mutex.Lock()
		}
		return nil
	}
	if response := w.put(body); response.Code != http.StatusForbidden {
		t.Fatalf("status %d, want 403: %s", response.Code, response.Body)
	}
	if _, err := Load(context.Background(), w.client, "shop", publication); !errors.Is(err, ErrNoResult) {
		t.Errorf("a result of a claim that had ended loads: %v", err)
	}
}

func TestAMissingChunkIsNeverWrittenAgain(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	body := w.largeDocument(t)
	publication := delivery.Publication(w.id)
	w.put(body)
	for _, record := range w.records() {
		if record.Name == chunkName(publication, 1) {
			if err := w.client.Delete(context.Background(), &record); err != nil {
				t.Fatal(err)
			}
		}
	}
	if response := w.put(body); response.Code != http.StatusOK {
		t.Errorf("status %d, want the receipt of the completed result", response.Code)
	}
	var invalid *InvalidResultError
	if _, err := Load(context.Background(), w.client, "shop", publication); !errors.As(err, &invalid) || !strings.Contains(invalid.Reason, "is missing") {
		t.Errorf("error %v, want that a record is missing", err)
	}
}

func TestTheClaimOfAnApplyMayHaveBecomeAnOwedObservation(t *testing.T) {
	owed := func(s *v1alpha1.PtahSchema) {
		claim := s.Status.ActiveOperation
		s.Status.PendingObservation = &v1alpha1.PendingObservationStatus{
			Outcome: v1alpha1.OutcomeUnknown, ApplyOperationID: claim.ID, ApplyJobName: claim.JobName, ApplyGeneration: claim.Generation,
		}
		s.Status.ActiveOperation = nil
	}
	w := newWorld(t, delivery.OperationApply)
	change(w, &v1alpha1.PtahSchema{}, "orders", owed)
	if response := w.put(w.document(t)); response.Code != http.StatusOK {
		t.Errorf("status %d: %s", response.Code, response.Body)
	}
	for name, spoil := range map[string]func(*v1alpha1.PendingObservationStatus){
		"another operation":  func(p *v1alpha1.PendingObservationStatus) { p.ApplyOperationID = digest("f") },
		"another Job":        func(p *v1alpha1.PendingObservationStatus) { p.ApplyJobName = "other" },
		"another Job UID":    func(p *v1alpha1.PendingObservationStatus) { p.ApplyJobUID = "other" },
		"another generation": func(p *v1alpha1.PendingObservationStatus) { p.ApplyGeneration = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, delivery.OperationApply)
			change(w, &v1alpha1.PtahSchema{}, "orders", func(s *v1alpha1.PtahSchema) { owed(s); spoil(s.Status.PendingObservation) })
			if response := w.put(w.document(t)); response.Code != http.StatusForbidden {
				t.Errorf("status %d, want 403", response.Code)
			}
		})
	}
}

func TestAPreflightStoresNothing(t *testing.T) {
	w := newWorld(t, delivery.OperationApply)
	if response := w.ask(http.MethodHead, w.path(), nil); response.Code != http.StatusNoContent {
		t.Errorf("status %d: %s", response.Code, response.Body)
	}
	if len(w.records()) != 0 {
		t.Error("a preflight stored a record")
	}
}

func TestWhoMayNotDeliver(t *testing.T) {
	schema := func(edit func(*v1alpha1.PtahSchema)) func(*world) {
		return func(w *world) { change(w, &v1alpha1.PtahSchema{}, "orders", edit) }
	}
	claim := func(edit func(*v1alpha1.ActiveOperationStatus)) func(*world) {
		return schema(func(s *v1alpha1.PtahSchema) { edit(s.Status.ActiveOperation) })
	}
	job := func(edit func(*batchv1.Job)) func(*world) {
		return func(w *world) { change(w, &batchv1.Job{}, "ptah-job", edit) }
	}
	pod := func(edit func(*corev1.Pod)) func(*world) {
		return func(w *world) { change(w, &corev1.Pod{}, "ptah-job-abcde", edit) }
	}
	unreadable := func(request string) func(*world) {
		return func(w *world) {
			w.fail = func(asked string) error {
				if strings.HasPrefix(asked, request) {
					return errors.New("overloaded")
				}
				return nil
			}
		}
	}
	for name, test := range map[string]struct {
		change func(*world)
		status int
		want   string
	}{
		"an invalid token":              {func(w *world) { w.review.Authenticated = false }, 401, "the token is not valid"},
		"a token with an error":         {func(w *world) { w.review.Error = "odd" }, 401, "the token is not valid"},
		"another audience":              {func(w *world) { w.review.Audiences = []string{"https://kubernetes.default.svc"} }, 401, "not for the audience operator.ptah.run/results"},
		"no audience":                   {func(w *world) { w.review.Audiences = nil }, 401, "not for the audience"},
		"a person's token":              {func(w *world) { w.review.User.Username = "alice" }, 401, "does not belong to a ServiceAccount"},
		"a node's token":                {func(w *world) { w.review.User.Username = "system:node:a" }, 401, "does not belong to a ServiceAccount"},
		"another namespace's token":     {func(w *world) { w.review.User.Username = "system:serviceaccount:bank:default" }, 401, "belongs to another namespace"},
		"a token without a Pod":         {func(w *world) { w.review.User.Extra = nil }, 401, "not bound to the claimed Pod"},
		"another Pod's token":           {func(w *world) { w.review.User.Extra[extraPodName] = []string{"other"} }, 401, "not bound to the claimed Pod"},
		"another Pod UID's token":       {func(w *world) { w.review.User.Extra[extraPodUID] = []string{"other"} }, 401, "not bound to the claimed Pod"},
		"a token of two Pods":           {func(w *world) { w.review.User.Extra[extraPodUID] = []string{"pod-uid", "other"} }, 401, "not bound to the claimed Pod"},
		"a token that is not reviewed":  {func(w *world) { w.reviewError = errors.New("down") }, 503, "could not be reviewed"},
		"another schema UID":            {func(w *world) { w.id.UID = "older" }, 403, "the PtahSchema was created anew"},
		"no such schema":                {func(w *world) { w.id.Name = "gone" }, 403, "the claimed PtahSchema does not exist"},
		"an unreadable schema":          {unreadable("get schema"), 503, "the PtahSchema could not be read"},
		"no claim":                      {schema(func(s *v1alpha1.PtahSchema) { s.Status.ActiveOperation = nil }), 403, "has no claim for this operation"},
		"a newer claim":                 {claim(func(c *v1alpha1.ActiveOperationStatus) { c.ID = digest("f") }), 403, "has no claim for this operation"},
		"a claim of another kind":       {claim(func(c *v1alpha1.ActiveOperationStatus) { c.Type = v1alpha1.OperationApply }), 403, "the claim is for another operation"},
		"a claim for another Job":       {claim(func(c *v1alpha1.ActiveOperationStatus) { c.JobName = "other" }), 403, "the claim names another Job"},
		"a claim for another Job UID":   {claim(func(c *v1alpha1.ActiveOperationStatus) { c.JobUID = "other" }), 403, "the claim names another Job"},
		"a claim with other inputs":     {claim(func(c *v1alpha1.ActiveOperationStatus) { c.InputFingerprint = digest("f") }), 403, "the claim has other inputs"},
		"a claim of another epoch":      {claim(func(c *v1alpha1.ActiveOperationStatus) { c.ExecutionBindingID = "v1-other" }), 403, "belongs to another execution binding"},
		"a claim of another generation": {claim(func(c *v1alpha1.ActiveOperationStatus) { c.Generation = 2 }), 403, "the claim is for another generation"},
		"a claim never dispatched":      {claim(func(c *v1alpha1.ActiveOperationStatus) { c.DispatchStarted = false }), 403, "was never dispatched"},
		"an owed Apply, not a refresh": {schema(func(s *v1alpha1.PtahSchema) {
			s.Status.PendingObservation = &v1alpha1.PendingObservationStatus{ApplyOperationID: s.Status.ActiveOperation.ID, ApplyJobName: "ptah-job", ApplyGeneration: 3}
			s.Status.ActiveOperation = nil
		}), 403, "has no claim for this operation"},
		"another Job UID":             {job(func(j *batchv1.Job) { j.UID = "other" }), 403, "the Job was created anew"},
		"a Job of nobody":             {job(func(j *batchv1.Job) { j.OwnerReferences = nil }), 403, "the Job does not belong to the PtahSchema"},
		"a Job of another":            {job(func(j *batchv1.Job) { j.OwnerReferences[0].UID = "other" }), 403, "the Job does not belong to the PtahSchema"},
		"a Job of another kind":       {job(func(j *batchv1.Job) { j.OwnerReferences[0].Kind = "CronJob" }), 403, "the Job does not belong to the PtahSchema"},
		"a Job of another operation":  {job(func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationOperationID] = "x" }), 403, "annotation operator.ptah.run/operation-id"},
		"a Job with other inputs":     {job(func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationInputs] = "x" }), 403, "annotation operator.ptah.run/input-fingerprint"},
		"a Job of another epoch":      {job(func(j *batchv1.Job) { j.Annotations[v1alpha1.AnnotationBinding] = "x" }), 403, "annotation operator.ptah.run/execution-binding-id"},
		"an unreadable Job":           {unreadable("get job"), 503, "the Job could not be read"},
		"another Pod UID":             {pod(func(p *corev1.Pod) { p.UID = "other" }), 403, "the Pod was created anew"},
		"a Pod of nobody":             {pod(func(p *corev1.Pod) { p.OwnerReferences = nil }), 403, "the Pod does not belong to the Job"},
		"a Pod of another Job":        {pod(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }), 403, "the Pod does not belong to the Job"},
		"a Pod of another account":    {pod(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "other" }), 403, "another ServiceAccount"},
		"a Pod that failed":           {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), 403, "the Pod has ended"},
		"a Pod that succeeded":        {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), 403, "the Pod has ended"},
		"an unreadable Pod":           {unreadable("get pod"), 503, "the Pod could not be read"},
		"a record that is not stored": {unreadable("create record"), 503, "could not be stored"},
		"a namespace that is deleted": {func(w *world) {
			w.fail = func(asked string) error {
				if !strings.HasPrefix(asked, "create record") {
					return nil
				}
				forbidden := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("ptahresultrecords").GroupResource(), "r", errors.New("it is being terminated"))
				forbidden.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
				return forbidden
			}
		}, 403, "the namespace is being deleted"},
		"a token bound to another UID": {func(w *world) { w.id.PodUID = "older" }, 401, "not bound to the claimed Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, delivery.OperationRefresh)
			test.change(w)
			response := w.put(w.document(t))
			if response.Code != test.status || !strings.Contains(response.Body.String(), test.want) {
				t.Errorf("status %d %s, want %d with %q", response.Code, response.Body, test.status, test.want)
			}
			if response.Header().Get("Connection") != "close" {
				t.Error("a refused body would be read on")
			}
			if (response.Header().Get("Retry-After") == "1") != (test.status == 503) {
				t.Errorf("Retry-After %q with status %d", response.Header().Get("Retry-After"), response.Code)
			}
			w.fail = nil
			if len(w.records()) != 0 {
				t.Error("a refused delivery stored a record")
			}
		})
	}
}

func TestARequestIsJudgedByItsHeadersBeforeAnythingIsAsked(t *testing.T) {
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, test := range map[string]struct {
		method, path string
		edit         func(*http.Request)
		status       int
		want         string
	}{
		"another method":          {http.MethodPost, "", nil, 405, "only HEAD and PUT"},
		"reading a result":        {http.MethodGet, "", nil, 405, "only HEAD and PUT"},
		"writing a plan":          {http.MethodPut, "/v1/plans/" + strings.Repeat("0", 32), nil, 405, "only GET"},
		"another path":            {http.MethodPut, "/v2/results", nil, 403, "nothing is served here"},
		"a path that is no name":  {http.MethodPut, "/v1/results/../x", nil, 403, "nothing is served here"},
		"a query":                 {http.MethodPut, "", func(r *http.Request) { r.URL.RawQuery = "a=b" }, 403, "nothing is served here"},
		"another's path":          {http.MethodPut, "/v1/results/" + strings.Repeat("0", 32), nil, 403, "the path does not belong to the claimed identity"},
		"no token":                {http.MethodPut, "", func(r *http.Request) { r.Header.Del("Authorization") }, 401, "one Authorization header"},
		"two tokens":              {http.MethodPut, "", func(r *http.Request) { r.Header.Add("Authorization", "Bearer x") }, 401, "one Authorization header"},
		"another scheme":          {http.MethodPut, "", set("Authorization", "Basic eDp5"), 401, "holds no bearer token"},
		"an odd token":            {http.MethodPut, "", set("Authorization", "Bearer a b"), 401, "holds no bearer token"},
		"a huge token":            {http.MethodPut, "", set("Authorization", "Bearer "+strings.Repeat("a", 8<<10+1)), 401, "holds no bearer token"},
		"no identity":             {http.MethodPut, "", func(r *http.Request) { r.Header.Del(delivery.IdentityHeader) }, 401, "header is required"},
		"an identity that is not": {http.MethodPut, "", set(delivery.IdentityHeader, "e30"), 401, "is not usable"},
		"another content type":    {http.MethodPut, "", set("Content-Type", "application/json"), 415, "the content type is not"},
		"an encoded body":         {http.MethodPut, "", set("Content-Encoding", "gzip"), 415, "a content encoding is not accepted"},
		"no length":               {http.MethodPut, "", func(r *http.Request) { r.ContentLength = -1 }, 411, "Content-Length is required"},
		"no body":                 {http.MethodPut, "", func(r *http.Request) { r.ContentLength = 0 }, 400, "the body is empty"},
		"a huge body":             {http.MethodPut, "", func(r *http.Request) { r.ContentLength = result.MaxBytes + 1 }, 413, "larger than 12582912 bytes"},
		"no digest":               {http.MethodPut, "", func(r *http.Request) { r.Header.Del(delivery.DigestHeader) }, 400, "header with a sha256 digest is required"},
		"a preflight with a body": {http.MethodHead, "", nil, 400, "HEAD carries no body"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, delivery.OperationRefresh)
			path := test.path
			if path == "" {
				path = w.path()
			}
			edits := []func(*http.Request){}
			if test.edit != nil {
				edits = append(edits, test.edit)
			}
			response := w.ask(test.method, path, w.document(t), edits...)
			if response.Code != test.status || !strings.Contains(response.Body.String(), test.want) {
				t.Errorf("status %d %s, want %d with %q", response.Code, response.Body, test.status, test.want)
			}
			if len(w.requests) != 0 {
				t.Errorf("the API server was asked %v", w.requests)
			}
		})
	}
}

func TestABodyThatIsNotTheResultIsNotStored(t *testing.T) {
	for name, test := range map[string]struct {
		body   func([]byte) []byte
		edit   func(*http.Request)
		status int
		want   string
	}{
		"another digest":    {nil, func(r *http.Request) { r.Header.Set(delivery.DigestHeader, digest("f")) }, 400, "does not have the digest"},
		"a body cut short":  {nil, func(r *http.Request) { r.ContentLength++ }, 400, "shorter than its Content-Length"},
		"no JSON":           {func([]byte) []byte { return []byte("hello") }, nil, 422, "not a result"},
		"an unknown field":  {func(b []byte) []byte { return []byte(strings.Replace(string(b), "{", `{"odd":1,`, 1)) }, nil, 422, "unknown field"},
		"two documents":     {func(b []byte) []byte { return append(b, b...) }, nil, 422, "more than one JSON document"},
		"another operation": {func(b []byte) []byte { return []byte(strings.Replace(string(b), digest("2"), digest("f"), 1)) }, nil, 422, "another operation than the claimed identity"},
		"another protocol": {func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"protocolVersion":1`, `"protocolVersion":2`, 1))
		}, nil, 422, "protocol version 2 is not 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, delivery.OperationRefresh)
			body := w.document(t)
			if test.body != nil {
				body = test.body(body)
			}
			edits := []func(*http.Request){}
			if test.edit != nil {
				edits = append(edits, test.edit)
			}
			response := w.put(body, edits...)
			if response.Code != test.status || !strings.Contains(response.Body.String(), test.want) {
				t.Errorf("status %d %s, want %d with %q", response.Code, response.Body, test.status, test.want)
			}
			if len(w.records()) != 0 {
				t.Error("it was stored")
			}
		})
	}
}

func TestSlotsBoundWhatIsWorkedOnAtOnce(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	for range cap(w.server.slots) {
		w.server.slots <- struct{}{}
	}
	response := w.put(w.document(t))
	if response.Code != http.StatusServiceUnavailable || response.Header().Get("Retry-After") != "1" || len(w.requests) != 0 {
		t.Errorf("status %d, Retry-After %q, requests %v", response.Code, response.Header().Get("Retry-After"), w.requests)
	}
	<-w.server.slots
	if response := w.put(w.document(t)); response.Code != http.StatusOK {
		t.Errorf("with a free slot: status %d", response.Code)
	}
	if len(w.server.slots) != cap(w.server.slots)-1 {
		t.Error("a slot was not given back")
	}
}

// hangingBody is a body of which nothing arrives until it is released.
type hangingBody struct {
	reached, release chan struct{}
	once             sync.Once
	io.Reader
}

func (b *hangingBody) Read(into []byte) (int, error) {
	b.once.Do(func() { close(b.reached) })
	<-b.release
	return b.Reader.Read(into)
}

func TestAPodThatHangsTakesOneSlotAndKeepsNobodyElseOut(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	body := w.document(t)
	hanging := &hangingBody{reached: make(chan struct{}), release: make(chan struct{}), Reader: bytes.NewReader(body)}
	first := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		first <- w.put(body, func(r *http.Request) { r.Body = io.NopCloser(hanging) })
	}()
	<-hanging.reached
	for range cap(w.server.slots) + 1 {
		response := w.put(body)
		if response.Code != http.StatusServiceUnavailable || !strings.Contains(response.Body.String(), "another request of this operation") {
			t.Fatalf("status %d %s, want 503 while the first request hangs", response.Code, response.Body)
		}
	}
	if len(w.server.slots) != 1 {
		t.Errorf("%d slots are taken by one Pod, want 1", len(w.server.slots))
	}
	close(hanging.release)
	if response := <-first; response.Code != http.StatusOK {
		t.Errorf("the first request ended with status %d %s", response.Code, response.Body)
	}
	if response := w.put(body); response.Code != http.StatusOK {
		t.Errorf("after its end: status %d %s", response.Code, response.Body)
	}
}

func TestAReviewedTokenIsKnownForHalfAMinuteAndARefusedOneIsNot(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	body := w.document(t)
	reviews := func() int {
		count := 0
		for _, request := range w.requests {
			if request == "review" {
				count++
			}
		}
		return count
	}
	w.review.Authenticated = false
	for range 2 {
		if w.put(body); reviews() != 1 {
			t.Fatal("a refused token was not reviewed again")
		}
	}
	w.review.Authenticated = true
	if w.put(body); reviews() != 1 {
		t.Fatal("the first use was not reviewed")
	}
	w.clock.SetTime(start.Add(reviewLifetime - 1))
	if w.put(body); reviews() != 0 {
		t.Error("a known token was reviewed again")
	}
	// What is known is what the token says, not that its Pod exists.
	change(w, &corev1.Pod{}, "ptah-job-abcde", func(p *corev1.Pod) { p.UID = types.UID("other") })
	if response := w.put(body); response.Code != http.StatusForbidden {
		t.Errorf("a known token of a Pod that is gone: status %d", response.Code)
	}
	w.clock.SetTime(start.Add(reviewLifetime))
	if w.put(body); reviews() != 1 {
		t.Error("a token is known for too long")
	}
}

func TestKnownTokensAreBounded(t *testing.T) {
	w := newWorld(t, delivery.OperationRefresh)
	for i := range 2 * maxReviews {
		w.server.reviews.keep(fmt.Sprint(i), &w.review)
	}
	if kept := len(w.server.reviews.reviews); kept != maxReviews {
		t.Errorf("%d tokens are known, want at most %d", kept, maxReviews)
	}
	w.clock.SetTime(start.Add(reviewLifetime))
	w.server.reviews.keep("new", &w.review)
	if kept := len(w.server.reviews.reviews); kept != 1 {
		t.Errorf("%d tokens are known after their time, want 1", kept)
	}
}
