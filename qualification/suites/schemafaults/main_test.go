// Package schemafaults is the suite of what happens to an Apply of a schema that is cut off, overtaken or left without
// its manager. The Apply is held inside the database by a lock that a person holds, so that each fault is known to hit
// a running statement. What the database was sent is read from its own journal.
package schemafaults

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
