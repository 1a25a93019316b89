// Package dataplane is the suite of the database path: converge from nothing with a person's approval, do nothing when
// nothing changed, see drift, refuse what is stale, name who approved, and say what is wrong. It runs against a lab
// with the operator installed; each scenario makes its own namespace and database, and holds its own control.
package dataplane

import (
	"context"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/suites/bench"
)

var (
	suite env.Environment
	table *bench.Bench
)

func TestMain(m *testing.M) {
	if os.Getenv(lab.EnvironmentVariable) == "" {
		os.Exit(m.Run()) // the probes' own tests; each scenario says that it is not run
	}
	var err error
	if table, err = bench.Open(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	suite = env.NewWithKubeConfig(table.Lab.Kubeconfig)
	suite.Finish(func(ctx context.Context, _ *envconf.Config) (context.Context, error) {
		return ctx, table.Book.Close()
	})
	os.Exit(suite.Run(m))
}

// scenario runs one scenario of the catalogue as one feature.
func scenario(t *testing.T, name string, run func(context.Context, *bench.Scenario)) {
	t.Helper()
	if suite == nil {
		t.Skipf("not-run: %s is not set, a scenario needs a lab (ptah-qualify run)", lab.EnvironmentVariable)
	}
	suite.Test(t, features.New(name).Assess(name, func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		table.Scenario(t, name, func(s *bench.Scenario) { run(ctx, s) })
		return ctx
	}).Feature())
}
