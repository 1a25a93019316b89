package dataplane

import (
	"context"
	"os"
	"strconv"
	"testing"

	"ptah.run/ptah/qualification/suites/bench"
	"ptah.run/ptah/qualification/suites/subject"
	"ptah.run/ptah/qualification/suites/transcript"
)

// page is the documentation that a new user follows, from this package's folder.
const page = "../../../support/docs/first-schema-change.md"

// TestDocumentedFirstChange runs the page as its reader does. It needs the workspace that "make lab" made.
func TestDocumentedFirstChange(t *testing.T) {
	t.Parallel()
	scenario(t, "documented-first-change", func(ctx context.Context, s *bench.Scenario) {
		text, err := os.ReadFile(page)
		s.Fixture(err)
		steps, err := transcript.Parse(string(text))
		s.Need("the page can be read", err)
		root := s.Bench.Lab.Workspace
		s.Need("the lab has a workspace", subject.ErrorUnless(root != "", "the lab's description names none; install the operator by quickstart or by a run with labs of its own"))
		environment := append(os.Environ(), "PATH="+s.Bench.Lab.BinDir+":"+os.Getenv("PATH"))
		clear := func() {
			// What a run that broke off left would make the page print other words.
			reset := transcript.Step{Expected: []string{"…"}, Command: "source .ptah/env\n" +
				"kubectl delete namespace shop --ignore-not-found && $LAB_SQL -qc 'DROP TABLE IF EXISTS orders, customers'"}
			_, err := transcript.Run(context.Background(), reset, root, environment)
			s.Fixture(err)
		}
		clear()
		s.T.Cleanup(clear)
		for _, step := range steps {
			// The reader's shell has the workspace's environment.
			step.Command = "source .ptah/env\n" + step.Command
			bounded, cancel := context.WithTimeout(ctx, subject.Patience)
			output, err := transcript.Run(bounded, step, root, environment)
			cancel()
			s.Observe("line "+strconv.Itoa(step.Line), output)
			s.Need("line "+strconv.Itoa(step.Line)+" prints what the page says", err)
		}
	})
}

// TestPageIsParsed keeps the page readable without a lab, and proves that its commands are seen at all.
func TestPageIsParsed(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := transcript.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < 10 {
		t.Errorf("only %d commands were found on the page", len(steps))
	}
}
