package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ptah.run/ptah/operator/executor/failure"
	"ptah.run/ptah/operator/executor/mysql/apply"
	"ptah.run/ptah/operator/executor/mysql/observe"
	"ptah.run/ptah/operator/executor/mysql/planner"
	"ptah.run/ptah/operator/executor/mysql/scratch"
	"ptah.run/ptah/operator/executor/mysql/sqltext"
	"ptah.run/ptah/operator/executor/mysql/target"
	"ptah.run/ptah/operator/plan/report"
)

const mysqlCases = "testdata/cases/mysql"

func TestMySQLCases(t *testing.T) {
	server := mysqlServer(t)
	places := make(chan struct{}, 4) // a server has 20 connections, and a case uses up to four
	got := map[string]verdict{}
	var mutex sync.Mutex
	started := time.Now()
	t.Run("case", func(t *testing.T) {
		for i, name := range caseNames(t, mysqlCases) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				places <- struct{}{}
				defer func() { <-places }()
				c := mysqlCase{server: server, name: fmt.Sprintf("case%d", i)}
				end, why := c.run(t.Context(), read(t, mysqlCases, name+".old.sql"), desired(t, mysqlCases, name), strings.HasSuffix(name, "noop"))
				mutex.Lock()
				defer mutex.Unlock()
				got[name] = end
				t.Logf("%s %s", end, why)
			})
		}
	})
	table(t, "MySQL", got, time.Since(started))
	compare(t, mysqlCases, got)
}

// mysqlCase is one case on one database of the target server.
type mysqlCase struct {
	server *scratch.Server
	name   string
	start  func(context.Context, scratch.Options) (*scratch.Server, error) // the scratch server; nil lends one
}

func (c mysqlCase) run(ctx context.Context, old, want string, noop bool) (verdict, string) {
	if err := c.fill(ctx, c.name, old); err != nil {
		return failed, "load the old state: " + err.Error()
	}
	if err := c.fill(ctx, c.name+"truth", want); err != nil {
		return failed, "load the truth: " + err.Error()
	}
	result, err := c.plan(ctx, want)
	var problem *failure.Error
	if errors.As(err, &problem) && problem.Code == report.CodeUnsupported && len(problem.Categories) > 0 {
		return refused, strings.Join(problem.Categories, ",") + ": " + problem.Detail
	}
	if err != nil {
		return failed, "plan: " + err.Error() + " " + failure.Detail(err)
	}
	if noop && result.Document != nil {
		return failed, "a plan for nothing"
	}
	if result.Document != nil {
		out, err := apply.Run(ctx, apply.Request{Target: c.target(), Data: result.Bytes, ExpectDigest: report.Digest(result.Bytes), LockTimeout: 10 * time.Second})
		if err != nil || out.Outcome != report.OutcomeApplied {
			return failed, fmt.Sprintf("apply: %s: %v %s", out.Outcome, err, failure.Detail(err))
		}
	}
	return c.judge(ctx, want, result)
}

// judge plans once more and compares the database, by mysqldump, with one that was loaded from the desired schema alone.
func (c mysqlCase) judge(ctx context.Context, want string, plan *planner.Result) (verdict, string) {
	now, err := c.dump(ctx, c.name)
	if err != nil {
		return failed, err.Error()
	}
	truth, err := c.dump(ctx, c.name+"truth")
	if err != nil {
		return failed, err.Error()
	}
	if now != truth {
		return silent, fmt.Sprintf("the database differs from the truth: it is\n%s\nand should be\n%s", now, truth)
	}
	rest, err := c.plan(ctx, want)
	if err != nil {
		return failed, "plan again: " + err.Error() + " " + failure.Detail(err)
	}
	if rest.Document != nil {
		return failed, "the second plan is not empty: " + rest.Document.Statements[0].SQL
	}
	if plan.Document == nil {
		return right, "no change"
	}
	return right, fmt.Sprintf("%d statements", len(plan.Document.Statements))
}

// fill makes a database and loads SQL into it as its owner would by hand.
func (c mysqlCase) fill(ctx context.Context, name, sql string) error {
	if err := makeMySQL(ctx, c.server, name); err != nil {
		return err
	}
	return loadMySQL(ctx, c.server, name, sql)
}

func makeMySQL(ctx context.Context, server *scratch.Server, name string) error {
	admin, err := target.Open(ctx, server.Config(server.AdminName(), ""), 0)
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, statement := range []string{"CREATE DATABASE " + name, "GRANT ALL ON " + name + ".* TO 'app'@'%'"} {
		if _, err := admin.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func loadMySQL(ctx context.Context, server *scratch.Server, name, sql string) error {
	config := server.Config("app", name)
	config.MultiStatements = true
	owner, err := target.Open(ctx, config, 0)
	if err != nil {
		return err
	}
	defer owner.Close()
	for _, piece := range sqltext.Script("SET timestamp = 946684800;\n" + sql) {
		if _, err := owner.ExecContext(ctx, piece.SQL); err != nil {
			return err
		}
	}
	return nil
}

func (c mysqlCase) target() *target.Target {
	t, err := target.Parse("mysql://app@/" + c.name + "?socket=" + c.server.Socket())
	if err != nil {
		panic(err) // the names of this test are all proper ones
	}
	return t
}

func (c mysqlCase) plan(ctx context.Context, want string) (*planner.Result, error) {
	request, err := c.request(ctx, want)
	if err != nil {
		return nil, err
	}
	return planner.Plan(ctx, request)
}

// request reads the database for a comparison with a schema.
func (c mysqlCase) request(ctx context.Context, want string) (planner.Request, error) {
	s, err := target.Connect(ctx, c.target(), 0, 10*time.Second)
	if err != nil {
		return planner.Request{}, err
	}
	defer s.Close()
	state, err := observe.Read(ctx, s, nil)
	if err != nil {
		return planner.Request{}, err
	}
	start := c.start
	if start == nil {
		start = lendScratch
	}
	return planner.Request{State: state, Desired: []planner.File{{Name: "desired.sql", SQL: want}},
		Mode: report.TransactionNone, Getenv: os.Getenv, Start: start}, nil
}

var (
	trailing  = regexp.MustCompile(`;*\s*(\*/)?\s*;;\n`)
	counter   = regexp.MustCompile(` AUTO_INCREMENT=\d+`)
	indexLine = regexp.MustCompile(`^  (PRIMARY KEY|UNIQUE KEY|KEY|FULLTEXT KEY|SPATIAL KEY|CONSTRAINT) `)
)

// dump is what mysqldump says of a database: without the counters, with the lines about keys of each table in one order,
// and without the semicolon that a program keeps when it was one of several statements in a text.
func (c mysqlCase) dump(ctx context.Context, name string) (string, error) {
	cmd := exec.CommandContext(ctx, "mysqldump", "--no-defaults", "--socket="+c.server.Socket(), "--user="+c.server.AdminName(), "--no-data",
		"--routines", "--triggers", "--events", "--skip-comments", "--no-tablespaces", name)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("mysqldump: %w: %s", err, problem.String())
	}
	text := trailing.ReplaceAllString(counter.ReplaceAllString(out.String(), ""), " $1;;\n")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "`"+name+"`", "`the database`"), ",\n", "\n")
	var lines, keys []string
	for line := range strings.SplitSeq(text, "\n") {
		if indexLine.MatchString(line) {
			keys = append(keys, line)
			continue
		}
		slices.Sort(keys)
		lines = append(append(lines, keys...), line)
		keys = nil
	}
	return strings.Join(lines, "\n"), nil
}
