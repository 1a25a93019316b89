// Package dataplane is the suite of the database path: converge from nothing with a person's approval, do nothing when
// nothing changed, see drift, refuse what is stale, name who approved, and say what is wrong. It runs against a lab
// with the operator installed; each scenario makes its own namespace and database, and holds its own control.
package dataplane

import (
	"context"
	"os"
	"testing"

	"ptah.run/ptah/qualification/suites/bench"
)

var suite bench.Suite

func TestMain(m *testing.M) { os.Exit(suite.Main(m)) }

// scenario reports one scenario of the catalogue.
func scenario(t *testing.T, name string, run func(context.Context, *bench.Scenario)) {
	t.Helper()
	suite.Scenario(t, name, run)
}
