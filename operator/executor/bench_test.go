package executor_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/postgresql/scratch"
)

// manyTables is a schema of n tables with keys, checks, indexes and foreign keys in chains of ten; changed of them have
// one column and one index more.
func manyTables(n, changed int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "CREATE TABLE t%04d (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, code varchar(20) NOT NULL UNIQUE, parent bigint", i)
		if i%10 != 0 {
			fmt.Fprintf(&b, " REFERENCES t%04d(id)", i-1)
		}
		b.WriteString(", amount numeric(12,2) NOT NULL DEFAULT 0 CHECK (amount >= 0), at timestamptz NOT NULL DEFAULT now()")
		if i < changed {
			b.WriteString(", note text")
		}
		fmt.Fprintf(&b, ");\nCREATE INDEX t%04d_at ON t%04d (at DESC);\n", i, i)
		if i < changed {
			fmt.Fprintf(&b, "CREATE INDEX t%04d_note ON t%04d (note);\n", i, i)
		}
	}
	return b.String()
}

// BenchmarkPlan times whole plans, scratch server, both computations and rehearsal included.
func BenchmarkPlan(b *testing.B) {
	if _, err := scratch.Binaries(os.Getenv); err != nil {
		b.Skipf("no PostgreSQL 17 here: %v", err)
	}
	server, err := scratch.Start(b.Context(), scratch.Options{Owner: "app", Roles: []string{"app"}, Encoding: "UTF8", Getenv: os.Getenv})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Stop)
	for _, tables := range []int{20, 100, 500} {
		for name, test := range map[string]struct{ have, changed int }{"from empty": {0, 0}, "unchanged": {tables, 0}, "changed": {tables, min(40, tables/2)}} {
			b.Run(fmt.Sprintf("%d tables %s", tables, name), func(b *testing.B) {
				c := caseRun{server: server, name: fmt.Sprintf("many%d", benches.Add(1))}
				ctx := context.Background()
				if err := c.fill(ctx, c.name, manyTables(test.have, 0)); err != nil {
					b.Fatal(err)
				}
				want := manyTables(tables, test.changed)
				for b.Loop() {
					if _, err := c.plan(ctx, want); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
