package schema

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

// addPod makes a Pod that the Job of the present Apply owns, or somebody else. It has no label.
func (w *world) addPod(name string, owner types.UID, phase corev1.PodPhase) string {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: owner,
		}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ptah", Image: "ptah"}}},
	}
	w.create(pod)
	pod.Status.Phase = phase
	if w.serverSide {
		if err := w.base.Status().Update(context.Background(), pod); err != nil {
			w.t.Fatal(err)
		}
	} else if err := w.base.Update(context.Background(), pod); err != nil {
		w.t.Fatal(err)
	}
	return string(pod.UID)
}

// labelLikeTheApply gives a Pod the labels that the Pods of the present Apply have.
func (w *world) labelLikeTheApply(name string) {
	w.t.Helper()
	jobs := &batchv1.JobList{}
	if err := w.base.List(context.Background(), jobs, client.InNamespace(w.namespace), client.MatchingLabels{ptahv1.LabelOperation: "apply"}); err != nil {
		w.t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := w.base.Get(context.Background(), clientKey(w, name), pod); err != nil {
		w.t.Fatal(err)
	}
	pod.Labels = jobs.Items[0].Spec.Template.Labels
	if len(pod.Labels) == 0 {
		w.t.Fatal("the Pods of an Apply have no label")
	}
	if err := w.base.Update(context.Background(), pod); err != nil {
		w.t.Fatal(err)
	}
}

// TestThePodsOfAnApplyAreLookedForOnEveryPage has the only other Pod on the last page, behind Pods of other Jobs.
func TestThePodsOfAnApplyAreLookedForOnEveryPage(t *testing.T) {
	w := newWorld(t)
	w.podsPerPage = 2
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	for i := range 4 {
		w.addPod(fmt.Sprint("a", i), "another-job", corev1.PodRunning)
	}
	w.addPod("z", types.UID(w.get().Status.ActiveOperation.JobUID), corev1.PodFailed)
	w.runPods()
	w.take()
	w.mustPass(r)
	sameRequests(t, w.take(), "get PtahSchema", "update Lease", "get PtahResultRecord", "list Pod", "list Pod", "list Pod",
		"update PtahSchema/status", "create Job refresh")
	pending := w.get().Status.PendingObservation
	if pending.ApplyPodCount != 2 || len(pending.ApplyPodUIDs) != 2 || pending.Outcome != ptahv1.OutcomeUnknown {
		t.Errorf("%d Pods, of which %v, with the outcome %s", pending.ApplyPodCount, pending.ApplyPodUIDs, pending.Outcome)
	}
}

func TestAnApplyWithMoreThanOnePodIsUnknownWhateverWasDelivered(t *testing.T) {
	for name, test := range map[string]struct {
		pods  func(w *world, job types.UID) []string
		job   func(*batchv1.JobStatus)
		count int32
		uids  int
	}{
		"the one that delivered":         {count: 1, uids: 1},
		"a Pod of another Job beside it": {pods: func(w *world, _ types.UID) []string { w.addPod("a", "another-job", corev1.PodRunning); return nil }, count: 1, uids: 1},
		"a Pod of another Job with the labels of this one": {pods: func(w *world, _ types.UID) []string {
			w.addPod("a", "another-job", corev1.PodRunning)
			w.labelLikeTheApply("a")
			return nil
		}, count: 1, uids: 1},
		"another Pod of the Job, without label": {pods: func(w *world, job types.UID) []string { return []string{w.addPod("a", job, corev1.PodFailed)} }, count: 2, uids: 2},
		"two others": {pods: func(w *world, job types.UID) []string {
			return []string{w.addPod("a", job, corev1.PodFailed), w.addPod("b", job, corev1.PodSucceeded)}
		}, count: 3, uids: 3},
		"ten others, of which eight are named": {pods: func(w *world, job types.UID) []string {
			for i := range 10 {
				w.addPod(fmt.Sprint("p", i), job, corev1.PodFailed)
			}
			return nil
		}, count: 11, uids: 8},
		"one that is gone and that the Job counted": {job: func(s *batchv1.JobStatus) { s.Failed = 1 }, count: 2, uids: 1},
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, func(t *testing.T, w *world) {
				r := awaiting(t, w)
				w.approve("first")
				w.mustPass(r)
				job := types.UID(w.get().Status.ActiveOperation.JobUID)
				var want []string
				if test.pods != nil {
					want = test.pods(w, job)
				}
				if test.job != nil {
					w.tamper = test.job
				}
				w.runPods()
				w.tamper = nil
				w.take()
				w.mustPass(r)
				sameRequests(t, w.take(),
					"get PtahSchema", "update Lease", "get PtahResultRecord", "list Pod", "update PtahSchema/status", "create Job refresh")
				pending := w.get().Status.PendingObservation
				if pending.ApplyPodCount != test.count || len(pending.ApplyPodUIDs) != test.uids || !slices.IsSorted(pending.ApplyPodUIDs) {
					t.Errorf("%d Pods, of which %v", pending.ApplyPodCount, pending.ApplyPodUIDs)
				}
				for _, uid := range want {
					if !slices.Contains(pending.ApplyPodUIDs, uid) {
						t.Errorf("%v does not name %s", pending.ApplyPodUIDs, uid)
					}
				}
				outcome, ready := ptahv1.ApplySucceeded, "True/InSync"
				if test.count > 1 {
					outcome, ready = ptahv1.OutcomeUnknown, "True/ConvergedAfterUnknownOutcome"
				}
				if pending.Outcome != outcome || pending.Refusal != "" {
					t.Errorf("the outcome is %s, refused %q", pending.Outcome, pending.Refusal)
				}
				w.runPods()
				w.mustPass(r)
				s := w.get()
				expect(t, s, ptahv1.PhaseInSync, map[string]string{"Ready": ready})
				if credited := s.Status.Applied != nil; credited != (test.count == 1) {
					t.Errorf("credited: %t", credited)
				}
			})
		})
	}
}

func TestAProofWaitsForAPodThatTheJobDoesNotKnow(t *testing.T) {
	w := newWorld(t)
	r := awaiting(t, w)
	w.approve("first")
	w.mustPass(r)
	claim := w.get().Status.ActiveOperation
	w.addPod("rogue", types.UID(claim.JobUID), corev1.PodRunning)
	w.runPods()
	w.mustPass(r)
	s := w.get()
	expect(t, s, ptahv1.PhaseVerifyingConvergence, map[string]string{"Ready": "False/ApplyOutcomeUnknown", "PlanReady": "Unknown/ApplyOutcomeUnknown"})
	if s.Status.PendingObservation.ObserveAfter == nil || s.Status.ActiveOperation != nil {
		t.Fatal("the database is read although a Pod may still change it")
	}
	w.clock.Step(time.Minute)
	w.take()
	w.mustPass(r)
	sameRequests(t, w.take(), "get PtahSchema", "get Job", "list Pod", "update Lease")
	pod := &corev1.Pod{}
	if err := w.base.Get(context.Background(), clientKey(w, "rogue"), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodFailed
	if err := w.base.Update(context.Background(), pod); err != nil {
		t.Fatal(err)
	}
	w.mustPass(r)
	if claim := w.get().Status.ActiveOperation; claim == nil || claim.ProofOf == "" {
		t.Error("the proof does not begin when the Pod ended")
	}
}
