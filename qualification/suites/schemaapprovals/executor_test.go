package schemaapprovals

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/suites/bench"
)

// TestApprovalOfAnotherExecutorRefused does not run beside the others: it replaces the manager's Pods.
func TestApprovalOfAnotherExecutorRefused(t *testing.T) {
	scenario(t, "approval-of-another-executor-refused", func(ctx context.Context, s *bench.Scenario) {
		one := prepareApproved(ctx, s)
		other, err := relabelled(ctx, s.Bench.Lab, s.Bench.Lab.OperatorImages["executor"])
		s.Fixture(err)
		manage(ctx, s, "--executor-image", other)
		one.ReleaseJobs(ctx)
		fresh := one.replanned(ctx, "held")
		s.Check("another epoch", fresh.Status.ExecutionBinding.Epoch != one.waiting.Status.ExecutionBinding.Epoch && fresh.Status.ExecutionBinding.ExecutorImage == other,
			"the execution binding is %v", fresh.Status.ExecutionBinding)

		// The same image under another version of the product.
		one.waiting, one.since = fresh, time.Now()
		one.ApproveHeld(ctx, fresh, "version")
		manage(ctx, s, "--ptah-version", "0.0.0-qualification")
		one.ReleaseJobs(ctx)
		one.AppliesOnce(ctx, one.jobs, one.replanned(ctx, "version"), "fresh")
		one.has(ctx, "customers.name")
	})
}

// manage gives the manager another value of a flag for the rest of the test.
func manage(ctx context.Context, s *bench.Scenario, flag, value string) {
	s.T.Helper()
	before, err := s.Bench.SetManagerArgument(ctx, flag, value)
	if before != "" {
		s.T.Cleanup(func() {
			if _, err := s.Bench.SetManagerArgument(context.Background(), flag, before); err != nil {
				s.T.Errorf("put %s of the manager back: %v", flag, err)
			}
		})
	}
	s.Fixture(err)
	s.Witness(flag+" before and after", []string{before, value})
}

// relabelled publishes the released executor under another digest: the same layers with one more annotation.
func relabelled(ctx context.Context, description *lab.Description, released lab.OperatorImage) (string, error) {
	options, err := lab.RemoteOptions(ctx, description.Registry)
	if err != nil {
		return "", err
	}
	_, path, found := strings.Cut(released.ClusterReference, "/")
	if !found {
		return "", fmt.Errorf("the lab names the executor %q, which has no registry", released.ClusterReference)
	}
	reference, err := name.NewDigest(description.Registry.LocalHost + "/" + path)
	if err != nil {
		return "", fmt.Errorf("name the released executor: %w", err)
	}
	image, err := remote.Image(reference, options...)
	if err != nil {
		return "", fmt.Errorf("read the released executor: %w", err)
	}
	annotated, ok := mutate.Annotations(image, map[string]string{"run.ptah.qualification": "another digest"}).(v1.Image)
	if !ok {
		return "", fmt.Errorf("annotate the released executor: the result is no image")
	}
	repository, _, _ := strings.Cut(path, "@")
	digest, err := lab.PushImage(ctx, description.Registry, repository, annotated)
	if err != nil {
		return "", err
	}
	return description.Registry.ClusterHost + "/" + repository + "@" + digest, nil
}
