package executor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ptah.run/ptah/operator/executor/postgresql/specimen"
	"ptah.run/ptah/operator/executor/postgresql/target"
	"ptah.run/ptah/operator/plan/report"
)

// findingsVariable names a folder into which every pair that fails is written, made as small as it gets.
const findingsVariable = "PTAH_TEST_FINDINGS"

// TestPostgreSQLPairs plans between random schemas. What comes of a pair is a refusal that names a category, or a plan
// after which pg_dump prints what it prints for the desired schema alone; a finding becomes a case. PTAH_TEST_PAIRS says
// how many pairs and PTAH_TEST_SEED where they start, for a longer search.
func TestPostgreSQLPairs(t *testing.T) {
	server := targetServer(t)
	pairs, first := number(t, "PTAH_TEST_PAIRS", 25), uint64(number(t, "PTAH_TEST_SEED", 1))
	got := map[string]verdict{}
	var mutex sync.Mutex
	started := time.Now()
	t.Run("seed", func(t *testing.T) {
		for i := range pairs {
			seed := first + uint64(i)
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel() // each waits for servers of its own much of the time
				pair := specimen.NewPair(seed)
				end, why := runPair(t.Context(), caseRun{server: server}, pair)
				mutex.Lock()
				got[t.Name()] = end
				mutex.Unlock()
				switch end {
				case refused:
					t.Logf("seed %d is refused: %s", seed, why)
				case right:
				default:
					t.Errorf("seed %d is %s: %s\nfrom\n%s\nto\n%s", seed, end, why, pair.Old(), pair.New())
					keep(t, seed, caseRun{server: server}, pair, end, why)
				}
			})
		}
	})
	table(t, "PostgreSQL pairs", got, time.Since(started))
}

var pairNumber atomic.Int64

// every is of how many pairs one is planned by two servers: a plan computes its statements twice by itself.
const every = 3

// TestFindingsFromFiles runs what findingsVariable holds once more: NAME.old.sql with NAME.new.sql. TestInContainer runs it
// where PTAH_TEST_INSIDE asks for it.
func TestFindingsFromFiles(t *testing.T) {
	folder := os.Getenv(findingsVariable)
	if folder == "" {
		t.Skipf("%s names no folder", findingsVariable)
	}
	server := targetServer(t)
	files, err := filepath.Glob(filepath.Join(folder, "*.old.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".old.sql")
		t.Run(filepath.Base(name), func(t *testing.T) {
			var sides [2]string
			for i, suffix := range []string{".old.sql", ".new.sql"} {
				data, err := os.ReadFile(name + suffix)
				if err != nil {
					t.Fatal(err)
				}
				sides[i] = string(data)
			}
			end, why := runTexts(t.Context(), caseRun{server: server}, sides[0], sides[1], true)
			t.Logf("%s %s", end, why)
			if end != right && end != refused {
				t.Fail()
			}
		})
	}
}

// runPair plans, applies and compares one pair.
func runPair(ctx context.Context, c caseRun, pair specimen.Pair) (verdict, string) {
	return runTexts(ctx, c, pair.Old(), pair.New(), pair.Seed()%every == 0)
}

// runTexts does so in databases of its own, which are gone afterwards.
func runTexts(ctx context.Context, c caseRun, old, want string, twice bool) (verdict, string) {
	c.name = fmt.Sprintf("pair%d", pairNumber.Add(1))
	defer func() {
		for _, suffix := range []string{"", "truth", "again0", "again1"} {
			_ = c.server.Remove(context.WithoutCancel(ctx), c.name+suffix) // not each was made
		}
	}()
	for name, sql := range map[string]string{c.name: old, c.name + "truth": want} {
		if err := c.fill(ctx, name, sql); err != nil {
			return failed, "load a schema of the generator: " + err.Error()
		}
	}
	first, err := c.plan(ctx, want)
	var problem *target.Error
	if errors.As(err, &problem) && problem.Code == report.CodeUnsupported && len(problem.Categories) > 0 {
		return refused, strings.Join(problem.Categories, ",") + ": " + problem.Detail
	}
	if err != nil {
		return failed, "plan: " + err.Error() + " " + target.Detail(err)
	}
	if twice {
		second, err := c.plan(ctx, want)
		if err != nil {
			return failed, "plan twice: " + err.Error() + " " + target.Detail(err)
		}
		if !bytes.Equal(first.Bytes, second.Bytes) {
			return failed, "two plans of the same have different bytes"
		}
	}
	if first.Document != nil {
		if v, why := c.apply(ctx, first.Bytes); v != right {
			return v, why
		}
	}
	rest, err := c.plan(ctx, want)
	if err != nil {
		return failed, "plan again: " + err.Error() + " " + target.Detail(err)
	}
	if rest.Document != nil {
		return failed, "the plan after the plan is not empty:\n" + string(rest.Bytes)
	}
	return c.compareTexts(ctx)
}

// compareTexts compares what pg_dump prints for the database and for the truth. It shares no code with the planner,
// which reads dumps too.
func (c caseRun) compareTexts(ctx context.Context) (verdict, string) {
	var sides [2]string
	for i, name := range []string{c.name, c.name + "truth"} {
		text, err := c.printed(ctx, name)
		if err != nil {
			return failed, err.Error()
		}
		sides[i] = text
	}
	if len(differentObjects(sides[0], sides[1])) == 0 {
		return right, ""
	}
	// PostgreSQL prints some expressions in another way once it has read its own text again.
	for i, text := range sides {
		name := fmt.Sprintf("%sagain%d", c.name, i)
		if err := c.server.Create(ctx, name); err != nil {
			return failed, err.Error()
		}
		if _, err := c.program(ctx, name, text, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"); err != nil {
			return failed, "load what pg_dump printed: " + err.Error()
		}
		var err error
		if sides[i], err = c.printed(ctx, name); err != nil {
			return failed, err.Error()
		}
	}
	if left := differentObjects(sides[0], sides[1]); len(left) > 0 {
		return silent, fmt.Sprintf("%d objects differ, the first is\n%s", len(left), left[0])
	}
	return right, "after a reload"
}

func (c caseRun) printed(ctx context.Context, name string) (string, error) {
	out, err := c.program(ctx, name, "", "pg_dump", "--schema-only")
	return string(out), err
}

func (c caseRun) program(ctx context.Context, database, input, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.server.Binaries(), program), args...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, c.server.Environment(database)...)
	var out, problem bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &problem
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, problem.String())
	}
	return out.Bytes(), nil
}

var printedHeader = regexp.MustCompile(`^-- Name: .*; Type: ([A-Z ]+); Schema: .*; Owner: `)

// printedObjects cuts the text of pg_dump at the headers of its objects. The lines of a table and of grants are sorted,
// because their order says nothing; objects with the same header are put together.
func printedObjects(text string) map[string]string {
	parts := map[string][]string{}
	header, kind := "", ""
	var lines []string
	flush := func() {
		if kind == "TABLE" || kind == "ACL" || kind == "DEFAULT ACL" {
			slices.Sort(lines)
		}
		if header != "" {
			parts[header] = append(parts[header], strings.Join(lines, "\n"))
		}
		lines = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if match := printedHeader.FindStringSubmatch(line); match != nil {
			flush()
			header, kind = line, match[1]
			continue
		}
		switch {
		case line == "" || line == "--" || strings.HasPrefix(line, "-- PostgreSQL database dump complete"):
		case strings.HasPrefix(line, "SET default_"), strings.HasPrefix(line, `\unrestrict `):
		default:
			lines = append(lines, strings.TrimSuffix(line, ","))
		}
	}
	flush()
	out := map[string]string{}
	for header, texts := range parts {
		slices.Sort(texts)
		out[header] = strings.Join(texts, "\n")
	}
	return out
}

// differentObjects says how the objects of two dumps differ.
func differentObjects(a, b string) []string {
	one, two := printedObjects(a), printedObjects(b)
	headers := map[string]bool{}
	for header := range one {
		headers[header] = true
	}
	for header := range two {
		headers[header] = true
	}
	var out []string
	for header := range headers {
		if one[header] != two[header] {
			out = append(out, header+"\nis\n"+one[header]+"\nand should be\n"+two[header])
		}
	}
	slices.Sort(out)
	return out
}

// keep makes a failing pair small and writes it where findingsVariable says.
func keep(t *testing.T, seed uint64, c caseRun, pair specimen.Pair, end verdict, why string) {
	t.Helper()
	folder := os.Getenv(findingsVariable)
	if folder == "" {
		return
	}
	const attempts = 120
	small := pair.Shrink(attempts, func(p specimen.Pair) bool {
		e, w := runPair(t.Context(), c, p)
		return e == end && signature(w) == signature(why)
	})
	_, said := runPair(t.Context(), c, small)
	for suffix, text := range map[string]string{".old.sql": small.Old(), ".new.sql": small.New(), ".txt": fmt.Sprintf("seed %d is %s: %s\n", seed, end, said)} {
		name := filepath.Join(folder, fmt.Sprintf("%s-%d%s", end, seed, suffix))
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil { //nolint:gosec // a folder that two accounts share
			t.Error(err)
		}
	}
}

// signature is the part of a reason that two pairs of the same defect share.
func signature(why string) string {
	why, _, _ = strings.Cut(regexp.MustCompile(`"[^"]*"|[0-9]+|\n.*`).ReplaceAllString(why, ""), "(")
	return why[:min(len(why), 60)]
}

func TestDifferentObjects(t *testing.T) {
	object := func(kind, name, body string) string {
		return "--\n-- Name: " + name + "; Type: " + kind + "; Schema: public; Owner: app\n--\n\n" + body + "\n\n\n"
	}
	base := object("TABLE", "t", "CREATE TABLE public.t (\n    a integer,\n    b text\n);") + object("VIEW", "v", "CREATE VIEW public.v AS\n SELECT 1 AS a,\n    2 AS b;")
	for name, test := range map[string]struct {
		other string
		want  int
	}{
		"the same":                 {base, 0},
		"columns in another order": {strings.Replace(base, "    a integer,\n    b text\n", "    b text,\n    a integer\n", 1), 0},
		"another type":             {strings.Replace(base, "a integer", "a bigint", 1), 1},
		"another order of a view":  {strings.Replace(base, " SELECT 1 AS a,\n    2 AS b", " SELECT 2 AS b,\n    1 AS a", 1), 1},
		"another owner":            {strings.Replace(base, "Owner: app", "Owner: other", 1), 2},
		"an object less":           {before(base, "--\n-- Name: v"), 1},
		"a comment more":           {base + object("COMMENT", "TABLE t", "COMMENT ON TABLE public.t IS 'x';"), 1},
	} {
		if got := differentObjects(base, test.other); len(got) != test.want {
			t.Errorf("%s: %d differences: %v", name, len(got), got)
		}
	}
}

// before is what stands before a mark, which must be there.
func before(text, mark string) string {
	out, _, found := strings.Cut(text, mark)
	if !found {
		panic("there is no " + mark)
	}
	return out
}
