package subject

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
)

// Job is an operation Job as a watch saw it when it was created.
type Job struct {
	At          time.Time `json:"at"`
	Name        string    `json:"name"`
	UID         string    `json:"uid"`
	Operation   string    `json:"operation"` // "refresh" or "apply"
	OperationID string    `json:"operationID"`
	Plan        string    `json:"plan,omitempty"` // fingerprint, of an Apply
}

// Jobs is every Job that a namespace ever had since the record began. It rests on one uninterrupted watch: where that
// watch has a gap, the record is no evidence and says so.
type Jobs struct {
	subject *Subject
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	seen    map[string]Job
	problem error
}

// RecordJobs begins a record of the namespace's Jobs. It ends with the test.
func (s *Subject) RecordJobs(ctx context.Context) *Jobs {
	s.T.Helper()
	list := &batchv1.JobList{}
	s.Fixture(s.Bench.Client.List(ctx, list, client.InNamespace(s.Key.Namespace)))
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	jobs := &Jobs{subject: s, stop: stop, done: make(chan struct{}), seen: map[string]Job{}}
	for i := range list.Items {
		jobs.add(&list.Items[i])
	}
	go jobs.follow(watching, list.ResourceVersion)
	s.T.Cleanup(func() {
		stop()
		<-jobs.done
	})
	return jobs
}

// follow watches from a resource version on, and goes on where a watch ended by itself.
func (j *Jobs) follow(ctx context.Context, version string) {
	defer close(j.done)
	for ctx.Err() == nil {
		options := &client.ListOptions{Namespace: j.subject.Key.Namespace, Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}}
		stream, err := j.subject.Bench.Client.Watch(ctx, &batchv1.JobList{}, options)
		if err != nil {
			if ctx.Err() == nil {
				j.fail(fmt.Errorf("watch the Jobs of namespace %s: %w", j.subject.Key.Namespace, err))
			}
			return
		}
		for event := range stream.ResultChan() {
			job, ok := event.Object.(*batchv1.Job)
			if !ok {
				j.fail(fmt.Errorf("the watch of the Jobs of namespace %s has a gap: %v", j.subject.Key.Namespace, event.Object))
				stream.Stop()
				return
			}
			version = job.ResourceVersion
			if event.Type != watch.Bookmark {
				j.add(job)
			}
		}
	}
}

func (j *Jobs) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.problem = err
}

func (j *Jobs) add(job *batchv1.Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.seen[string(job.UID)]; known {
		return
	}
	j.seen[string(job.UID)] = Job{
		At: job.CreationTimestamp.Time, Name: job.Name, UID: string(job.UID), Operation: job.Labels[v1alpha1.LabelOperation],
		OperationID: job.Annotations[v1alpha1.AnnotationOperationID], Plan: job.Annotations[v1alpha1.AnnotationPlan],
	}
}

// Applies are the Apply Jobs of the record, oldest first.
func (j *Jobs) Applies(ctx context.Context) []Job {
	j.subject.T.Helper()
	return slices.DeleteFunc(j.All(ctx), func(job Job) bool { return job.Operation != "apply" })
}

// All are the Jobs of the record, oldest first. It first waits until the record holds every Job that a list shows, so
// that the watch is known to be up to date.
func (j *Jobs) All(ctx context.Context) []Job {
	j.subject.T.Helper()
	list := &batchv1.JobList{}
	j.subject.Fixture(j.subject.Bench.Client.List(ctx, list, client.InNamespace(j.subject.Key.Namespace)))
	deadline := time.Now().Add(10 * time.Second)
	for missing := j.missing(list); missing != ""; missing = j.missing(list) {
		if time.Now().After(deadline) {
			j.subject.Fixture(fmt.Errorf("the watch did not deliver Job %s, which exists", missing))
		}
		time.Sleep(50 * time.Millisecond)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.subject.Fixture(j.problem)
	jobs := slices.Collect(maps.Values(j.seen))
	slices.SortFunc(jobs, func(a, b Job) int { return a.At.Compare(b.At) })
	return jobs
}

// missing names a listed Job that the record lacks, "" where it lacks none.
func (j *Jobs) missing(list *batchv1.JobList) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range list.Items {
		if _, known := j.seen[string(list.Items[i].UID)]; !known && j.problem == nil {
			return list.Items[i].Name
		}
	}
	return ""
}
