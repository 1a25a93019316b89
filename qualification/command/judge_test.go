package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/judge"
)

// revised is the quickstart profile with a second revision that makes one change and lists it.
func revised(t *testing.T, dir, listed, old, fresh string) string {
	t.Helper()
	text := string(dossiertest.Passing(t).Profile)
	begin, end := strings.Index(text, "revision: 1\n"), strings.Index(text, "\nsupport:")
	if begin < 0 || end < begin || !strings.Contains(text, old) {
		t.Fatalf("the profile of the repository has another shape, or holds no %q", old)
	}
	revisions := strings.Replace(text[begin:end], "revision: 1\n", "revision: 2\n", 1) +
		"  - number: 2\n    date: 2026-11-30\n    reason: It was too weak.\n    changes: [" + listed + "]\n"
	path := filepath.Join(dir, listed+".yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(text[:begin]+revisions+text[end:], old, fresh, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestARevisedProfileJudgesARunAgainAndSaysWhatChanges(t *testing.T) {
	dir := t.TempDir()
	run := dossiertest.Passing(t).Store(t)
	stricter := revised(t, dir, "requests-per-apply", "bound: {atMost: 40}", "bound: {atMost: 6}")

	code, out, errs := qualify(t, "judge", "--run", run, "--profile", stricter, "--against", "run")
	if code != ExitProductFailed || !strings.Contains(errs, "fail (product)") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{
		"Verdicts that differ from those under profile quickstart, revision 1:",
		"- requests-per-apply in data-plane.kubernetes-1.37.postgresql-17: fail (product), was pass\n",
		"declared: target requests-per-apply is stricter: at most 6 requests instead of at most 40 requests",
		"now: bound-exceeded: max of manager-work-requests over apply is 7 requests, declared is at most 6",
		"- PA-08: fail (product), was pass\n", "- the whole: fail (product), was pass\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("judge does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "- requests-per-refresh") || strings.Contains(out, "- PA-02") {
		t.Errorf("judge names verdicts that did not change:\n%s", out)
	}

	// The other way round, and against a judgement that was kept.
	kept := filepath.Join(dir, "judgement.json")
	qualify(t, "judge", "--run", run, "--profile", stricter, "--output", kept)
	for _, against := range []string{stricter, kept} {
		out = succeed(t, "judge", "--run", run, "--against", against)
		if !strings.Contains(out, "- requests-per-apply in data-plane.kubernetes-1.37.postgresql-17: pass, was fail (product)\n") || !strings.Contains(out, "no longer: bound-exceeded") {
			t.Errorf("against %s judge says:\n%s", against, out)
		}
	}
	if out := succeed(t, "judge", "--run", run, "--against", "run"); !strings.Contains(out, "No verdict differs from those under profile quickstart, revision 1.") {
		t.Errorf("against itself judge says:\n%s", out)
	}
}

func TestDifferencesAreDataToo(t *testing.T) {
	dir := t.TempDir()
	run := dossiertest.Passing(t).Store(t)
	unlisted := revised(t, dir, "requests-per-refresh", "bound: {atMost: 40}", "bound: {atMost: 6}")
	code, out, _ := qualify(t, "judge", "--run", run, "--profile", unlisted, "--against", "run", "--format", "json")
	var result struct {
		Judgement   judge.Judgement
		Against     string
		Differences []judge.Difference
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != ExitProductFailed || result.Against == "" || len(result.Differences) == 0 || result.Judgement.Profile.Revision != 2 {
		t.Errorf("exit code %d, %+v", code, result)
	}
	// A revision that does not own up to a change cannot judge evidence of the one before it.
	if !strings.Contains(out, "inputs-differ") {
		t.Errorf("the cell is not void: %s", out)
	}
	for _, one := range result.Differences {
		if one.Before == one.After {
			t.Errorf("%+v is no difference", one)
		}
	}
	if out := succeed(t, "judge", "--run", run, "--against", "run", "--format", "json"); !strings.Contains(out, `"differences": []`) {
		t.Errorf("no difference is written as %s", out)
	}
}

func TestBadInputOfAComparison(t *testing.T) {
	dir := t.TempDir()
	run := dossiertest.Passing(t).Store(t)
	garbage := filepath.Join(dir, "garbage.json")
	if err := os.WriteFile(garbage, []byte(`{"verdict": "fine"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ against, want string }{
		"what is no judgement":       {garbage, "is no judgement"},
		"what is not there":          {filepath.Join(dir, "none.yaml"), "there is no file"},
		"a folder instead of a file": {dir, "is a directory"},
	} {
		code, out, errs := qualify(t, "judge", "--run", run, "--against", test.against)
		if code != ExitUsage || out != "" || !strings.Contains(errs, test.want) || strings.Contains(errs, "\n") {
			t.Errorf("%s: exit code %d, said %q and %q", name, code, out, errs)
		}
	}
}

func TestTheFlagsOfJudgeAndAuditComplete(t *testing.T) {
	run := dossiertest.Passing(t).Store(t)
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"judge", "--format", ""}, "text\njson\n"},
		{[]string{"audit", "count", "--run", run, "--cell", ""}, "data-plane.kubernetes-1.37.postgresql-17\n"},
		{[]string{"audit", "explain", "--run", run, "--user", "system:"}, dossiertest.Manager + "\n"},
	} {
		if out := succeed(t, append([]string{"__complete"}, test.arguments...)...); !strings.HasPrefix(out, test.want) {
			t.Errorf("%v completes to %q", test.arguments, out)
		}
	}
}
