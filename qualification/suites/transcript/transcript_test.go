package transcript

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	page := "text\n```sql\n$ not a command\n```\n```console\n$ echo one \\\n  two\none two\n$ cat <<EOF\n$ inside\nEOF\n$ inside\n```\n```console interrupt\n$ tail -f x\nend\n```\n"
	steps, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	// The second "$ inside" is a command: output that begins like a prompt cannot be told from one.
	want := []Step{
		{Line: 6, Command: "echo one \\\n  two", Expected: []string{"one two"}},
		{Line: 9, Command: "cat <<EOF\n$ inside\nEOF"},
		{Line: 12, Command: "inside"},
		{Line: 15, Command: "tail -f x", Expected: []string{"end"}, Interrupt: true},
	}
	if len(steps) != len(want) {
		t.Fatalf("got %d steps: %+v", len(steps), steps)
	}
	for i := range want {
		if steps[i].Line != want[i].Line || steps[i].Command != want[i].Command || steps[i].Interrupt != want[i].Interrupt ||
			strings.Join(steps[i].Expected, "\n") != strings.Join(want[i].Expected, "\n") {
			t.Errorf("step %d is %+v, want %+v", i, steps[i], want[i])
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, page := range map[string]string{
		"should refuse a block without its end":             "```console\n$ ls\n",
		"should refuse output before the first command":     "```console\noutput\n```\n",
		"should refuse a block without a command":           "```console\n```\n",
		"should refuse an unknown word":                     "```console quickly\n$ ls\n```\n",
		"should refuse a here-document without its end":     "```console\n$ cat <<EOF\nx\n```\n",
		"should refuse an interrupted block without a line": "```console interrupt\n$ ls\n```\n",
	} {
		t.Run(name, func(t *testing.T) {
			if steps, err := Parse(page); err == nil {
				t.Fatalf("accepted as %+v", steps)
			}
		})
	}
}

func TestMatches(t *testing.T) {
	cases := map[string]struct {
		expected string
		output   string
		same     bool
	}{
		"should accept equal lines":                        {"a\nb", "a\nb\n", true},
		"should refuse another line":                       {"a\nb", "a\nc\n", false},
		"should refuse a missing line":                     {"a\nb", "a\n", false},
		"should refuse a line too many":                    {"a", "a\nb\n", false},
		"should let an ellipsis stand for any text":        {"id …!", "id 42!\n", true},
		"should not let an ellipsis hide the rest":         {"id …!", "id 42?\n", false},
		"should let a line of an ellipsis stand for lines": {"a\n…\nd", "a\nb\nc\nd\n", true},
		"should still want what follows the ellipsis":      {"a\n…\nd", "a\nb\nc\n", false},
		"should fold the blanks between columns":           {"NAME   PHASE", "NAME          PHASE\n", true},
		"should take special characters as they are":       {"a.b (c)", "axb (c)\n", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Matches(strings.Split(c.expected, "\n"), c.output)
			if (err == nil) != c.same {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, c := range map[string]struct {
		step Step
		fail bool
	}{
		"should compare what a command prints":          {Step{Command: "echo hello", Expected: []string{"hello"}}, false},
		"should notice another output":                  {Step{Command: "echo hello", Expected: []string{"goodbye"}}, true},
		"should notice a failing command":               {Step{Command: "echo hello; false", Expected: []string{"hello"}}, true},
		"should interrupt once the line was seen":       {Step{Command: "echo a; echo done; sleep 600", Expected: []string{"a", "done"}, Interrupt: true}, false},
		"should notice an end before the line was seen": {Step{Command: "echo a", Expected: []string{"done"}, Interrupt: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Run(ctx, c.step, t.TempDir(), os.Environ()); (err != nil) != c.fail {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("```console\n$ ls\n…\n```\n")
	f.Fuzz(func(t *testing.T, page string) {
		steps, err := Parse(page)
		for _, step := range steps {
			if err == nil && strings.TrimSpace(step.Command) == "" {
				t.Fatal("an empty command was accepted")
			}
		}
	})
}
