// Package schemaapprovals is the suite of what an approval of a schema binds. Each scenario lets an approval be
// accepted, changes one bound input before anything is dispatched, and then wants two things: the database was sent no
// statement that nobody approved, and a fresh approval of the fresh plan causes exactly one Apply.
package schemaapprovals

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
