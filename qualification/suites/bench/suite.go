package bench

import (
	"context"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"ptah.run/ptah/qualification/lab"
)

// Suite is the frame of one functional suite: the lab it runs against and the book it writes.
type Suite struct {
	environment env.Environment
	bench       *Bench
}

// Main runs the tests of a suite's package and returns the exit code of the process. Without a lab only the tests of
// the suite's own probes run, and each scenario says that it is not run.
func (s *Suite) Main(m *testing.M) int {
	if os.Getenv(lab.EnvironmentVariable) == "" {
		return m.Run()
	}
	opened, err := Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.bench = opened
	s.environment = env.NewWithKubeConfig(opened.Lab.Kubeconfig)
	s.environment.Finish(func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
		return ctx, opened.Book.Close()
	})
	return s.environment.Run(m)
}

// Scenario runs one scenario of the catalogue as one feature.
func (s *Suite) Scenario(t *testing.T, name string, run func(context.Context, *Scenario)) {
	t.Helper()
	if s.environment == nil {
		t.Skipf("not-run: %s is not set, a scenario needs a lab (ptah-qualify run)", lab.EnvironmentVariable)
	}
	s.environment.Test(t, features.New(name).Assess(name, func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		s.bench.Scenario(t, name, func(scenario *Scenario) { run(ctx, scenario) })
		return ctx
	}).Feature())
}
