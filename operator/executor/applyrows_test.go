package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"ptah.run/ptah/operator/executor/postgresql/apply"
	"ptah.run/ptah/operator/executor/postgresql/scratch"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/plan/report"
)

// planned is a database with rows and a plan for it.
type planned struct {
	caseRun
	t    *testing.T
	want string
	data []byte
}

func newPlanned(t *testing.T, server *scratch.Server, old, want string) *planned {
	t.Helper()
	p := &planned{caseRun: caseRun{server: server, name: fmt.Sprintf("rows%d", benches.Add(1))}, t: t, want: want}
	if err := p.fill(t.Context(), p.name, old); err != nil {
		t.Fatal(err)
	}
	p.compute()
	return p
}

func (p *planned) compute() {
	p.t.Helper()
	result, err := p.plan(p.t.Context(), p.want)
	if err != nil || result.Document == nil {
		p.t.Fatal("no plan", err, target.Detail(err))
	}
	p.data = result.Bytes
}

func (p *planned) apply() (report.SchemaApply, error) {
	p.t.Helper()
	parsed, err := p.target()
	if err != nil {
		p.t.Fatal(err)
	}
	return apply.Run(p.t.Context(), apply.Request{Target: parsed, Data: p.data, Binaries: p.server.Binaries()})
}

// answer reads one value.
func (p *planned) answer(query string) string {
	p.t.Helper()
	owner, err := p.server.Owner(p.t.Context(), p.name)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = owner.Close(p.t.Context()) }()
	var text string
	if err := owner.QueryRow(p.t.Context(), query).Scan(&text); err != nil {
		p.t.Fatal(err)
	}
	return text
}

func (p *planned) exec(sql string) {
	p.t.Helper()
	owner, err := p.server.Owner(p.t.Context(), p.name)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = owner.Close(p.t.Context()) }()
	if _, err := owner.Exec(p.t.Context(), sql); err != nil {
		p.t.Fatal(err)
	}
}

// TestApplyRows holds that rows which fit survive a change of what they are stored as, and that one row which does not
// fit leaves everything as it was.
func TestApplyRows(t *testing.T) {
	server := targetServer(t)
	for name, c := range map[string]struct {
		old, want string
		// rows reads what must survive; state is the SQLSTATE by which the plan fails, and mend what then makes it fit.
		rows, state, mend string
	}{
		"should leave everything as it was where a row holds a label that leaves": {
			old: `CREATE TYPE "S s" AS ENUM ('a', 'b', 'c'); CREATE TABLE w (id int PRIMARY KEY, st "S s" DEFAULT 'a', more "S s"[]);
				CREATE VIEW v AS SELECT id FROM w WHERE st = 'a'; INSERT INTO w VALUES (1, 'a', '{c}'), (2, 'b', NULL)`,
			want: `CREATE TYPE "S s" AS ENUM ('c', 'a'); CREATE TABLE w (id int PRIMARY KEY, st "S s" DEFAULT 'a', more "S s"[]);
				CREATE VIEW v AS SELECT id FROM w WHERE st = 'a'`,
			rows: `SELECT json_agg((id, st::text, more::text) ORDER BY id)::text FROM w`, state: "22P02", mend: `UPDATE w SET st = 'c' WHERE st = 'b'`,
		},
		"should leave everything as it was where an array holds a label that leaves": {
			old:  `CREATE TYPE s AS ENUM ('a', 'b'); CREATE TABLE w (id int PRIMARY KEY, more s[]); INSERT INTO w VALUES (1, '{a,b}')`,
			want: `CREATE TYPE s AS ENUM ('a'); CREATE TABLE w (id int PRIMARY KEY, more s[])`,
			rows: `SELECT json_agg((id, more::text))::text FROM w`, state: "22P02", mend: `UPDATE w SET more = '{a,NULL}'`,
		},
		"should leave everything as it was where a row lies outside the new bounds of its partition": {
			old: `CREATE TABLE l (id int, k int) PARTITION BY RANGE (k); CREATE TABLE l1 PARTITION OF l FOR VALUES FROM (1) TO (20);
				CREATE TABLE l2 PARTITION OF l FOR VALUES FROM (20) TO (30); INSERT INTO l VALUES (1, 15), (2, 25)`,
			want: `CREATE TABLE l (id int, k int) PARTITION BY RANGE (k); CREATE TABLE l1 PARTITION OF l FOR VALUES FROM (1) TO (10);
				CREATE TABLE l2 PARTITION OF l FOR VALUES FROM (10) TO (30)`,
			rows: `SELECT json_agg((id, k) ORDER BY id)::text FROM l`, state: "23514", mend: `UPDATE l SET k = 5 WHERE k = 15`,
		},
		"should leave everything as it was where the new key of a referenced table is not unique": {
			old: `CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL); CREATE TABLE u (id int PRIMARY KEY, t int REFERENCES t);
				INSERT INTO t VALUES (1, 7), (2, 7); INSERT INTO u VALUES (5, 2)`,
			want: `CREATE TABLE t (a int NOT NULL UNIQUE, b int NOT NULL, CONSTRAINT t_pkey PRIMARY KEY (b)); CREATE TABLE u (id int PRIMARY KEY, t int REFERENCES t (a))`,
			rows: `SELECT json_agg((a, b, id) ORDER BY a)::text FROM t LEFT JOIN u ON t = a`, state: "23505", mend: `UPDATE t SET b = a`,
		},
		"should leave everything as it was where the rows of a table break a rule of its new parent": {
			old:  `CREATE TABLE p (a int, CONSTRAINT ok CHECK (a > 0)); CREATE TABLE c (a int, b int); INSERT INTO c VALUES (-1, 2)`,
			want: `CREATE TABLE p (a int, CONSTRAINT ok CHECK (a > 0)); CREATE TABLE c (a int, b int, CONSTRAINT ok CHECK (a > 0)) INHERITS (p)`,
			rows: `SELECT json_agg((a, b))::text FROM c`, state: "23514", mend: `UPDATE c SET a = 1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlanned(t, server, c.old, c.want)
			rows, before := p.answer(c.rows), p.dumped()
			out, err := p.apply()
			checkApply(t, out, err, report.OutcomeFailed, report.CodeStatement, 0)
			if out.Problem.SQLState != c.state || p.answer(c.rows) != rows || p.dumped() != before {
				t.Fatalf("it failed with %s, and left %s of %s", out.Problem.SQLState, p.answer(c.rows), rows)
			}
			p.exec(c.mend)
			rows = p.answer(c.rows)
			out, err = p.apply()
			if err != nil || out.Outcome != report.OutcomeApplied || p.answer(c.rows) != rows {
				t.Fatalf("with rows that fit: %s, %v %s, and %s of %s is left", out.Outcome, err, target.Detail(err), p.answer(c.rows), rows)
			}
		})
	}
}

// dumped is the schema as text.
func (p *planned) dumped() string {
	p.t.Helper()
	entries, err := p.plain(p.t.Context(), p.name)
	if err != nil {
		p.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.SQL())
	}
	return b.String()
}
