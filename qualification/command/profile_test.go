package command

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inRepository makes a git repository with the quickstart profile of this one, commits it, and returns its folder and
// the path of the profile.
func inRepository(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	data, err := os.ReadFile("../../profiles/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "profiles", "quickstart.yaml")
	replaceFile(t, path, string(data))
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@t.example", "commit", "-q", "-m", "First"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, out)
		}
	}
	return dir, path
}

func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// edit replaces text in a file, and fails where there is nothing to replace.
func edit(t *testing.T, path string, pairs ...string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%s has no %q", path, pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	replaceFile(t, path, text)
}

func TestProfileDiffSinceACommit(t *testing.T) {
	const revised = "    reason: First declaration.\n  - number: 2\n    date: 2026-11-30\n    reason: Fewer are enough.\n    changes: [requests-per-refresh]\n"
	cases := map[string]struct {
		change []string
		commit string
		code   int
		want   string
	}{
		"should accept a profile that stayed as it was":       {nil, "HEAD", ExitPass, "no target, scenario or declaration changed"},
		"should refuse a changed target without its revision": {[]string{"atMost: 25}", "atMost: 30}"}, "HEAD", ExitUsage, "is still revision 1: add revision 2 with the reason"},
		"should say what the refused change is":               {[]string{"atMost: 25}", "atMost: 30}"}, "HEAD", ExitUsage, "quickstart: target requests-per-refresh is weaker: at most 30 requests instead of at most 25 requests"},
		"should refuse a revision that does not list it":      {[]string{"atMost: 40}", "atMost: 30}", "revision: 1", "revision: 2", "    reason: First declaration.\n", revised}, "HEAD", ExitUsage, "requests-per-apply changed and no new revision"},
		"should accept a change that its revision lists":      {[]string{"atMost: 25}", "atMost: 20}", "revision: 1", "revision: 2", "    reason: First declaration.\n", revised}, "HEAD", ExitPass, "the revision is 2 instead of 1: Fewer are enough."},
		"should refuse a commit that is not there":            {nil, "v9", ExitUsage, `has no commit "v9"`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			dir, path := inRepository(t)
			edit(t, path, test.change...)
			code, out, errs := qualify(t, "profile", "diff", "--repository", dir, "--since", test.commit, "quickstart")
			if code != test.code || !strings.Contains(out+errs, test.want) {
				t.Errorf("exit code %d, want %d with %q: %s%s", code, test.code, test.want, out, errs)
			}
		})
	}
}

func TestProfileDiffSinceACommitThatHasNoSuchProfile(t *testing.T) {
	dir, path := inRepository(t)
	if err := os.Rename(path, filepath.Join(dir, "profiles", "other.yaml")); err != nil {
		t.Fatal(err)
	}
	if out := succeed(t, "profile", "diff", "--repository", dir, "--since", "HEAD", "other"); !strings.Contains(out, "new, HEAD has no profiles/other.yaml") {
		t.Errorf("%s", out)
	}
}

func TestProfileDiffOfTwoFiles(t *testing.T) {
	_, before := inRepository(t)
	_, after := inRepository(t)
	edit(t, after, "atMost: 25}", "atMost: 30}")
	if code, _, errs := qualify(t, "profile", "diff", before, after); code != ExitUsage || !strings.Contains(errs, "add revision 2") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, errs := qualify(t, "profile", "diff", before); code != ExitUsage || !strings.Contains(errs, "name an old and a new profile") {
		t.Errorf("one file: exit code %d: %s", code, errs)
	}
}

func TestProfileLintShowsTheArithmetic(t *testing.T) {
	_, path := inRepository(t)
	edit(t, path, "  interval: 10s\n", "  interval: 10s\n  duration: 90m\n  quotas: [{resource: secrets, limit: 128, fixed: 13, perOperation: 1, retainedFor: 30m}]\n")
	code, out, errs := qualify(t, "profile", "lint", path)
	if code != ExitUsage || !strings.Contains(out, "1 resources in a namespace x 30m / 10s = 180 operations kept, x 1 each = 180, + 13 that are always there = 193, the limit is 128") || !strings.Contains(errs, "1 contradiction:") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	if code, _, errs := qualify(t, "profile", "table", path); code != ExitUsage || !strings.Contains(errs, "contradicts itself") {
		t.Errorf("table: exit code %d: %s", code, errs)
	}
}

func TestProfileTableIsWrittenAndChecked(t *testing.T) {
	dir, path := inRepository(t)
	arguments := []string{"profile", "table", "--output", dir, path}
	page := filepath.Join(dir, "profile-quickstart.md")
	if code, out, _ := qualify(t, append(arguments, "--check")...); code != ExitVerificationFailed || !strings.Contains(out, page) {
		t.Errorf("a page that is missing: exit code %d: %s", code, out)
	}
	if out := succeed(t, arguments...); !strings.HasPrefix(out, "<!-- Generated from profiles/quickstart.yaml") {
		t.Errorf("%.80s", out)
	}
	succeed(t, append(arguments, "--write")...)
	succeed(t, append(arguments, "--check")...)
	edit(t, page, "at most 25", "at most 26")
	if code, _, errs := qualify(t, append(arguments, "--check")...); code != ExitVerificationFailed || !strings.Contains(errs, "1 page out of date") {
		t.Errorf("a page that was edited: exit code %d: %s", code, errs)
	}
	if code, _, _ := qualify(t, append(arguments, "--check", "--write")...); code != ExitUsage {
		t.Errorf("both at once: exit code %d", code)
	}
}

func TestTheShownCanonicalFormHasTheDigest(t *testing.T) {
	_, path := inRepository(t)
	sum := sha256.Sum256([]byte(succeed(t, "profile", "show", path, "--format", "json")))
	if digest := succeed(t, "profile", "digest", path); strings.TrimSpace(digest) != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("the digest is %s", digest)
	}
	if code, _, errs := qualify(t, "profile", "show", path, "--format", "xml"); code != ExitUsage || !strings.Contains(errs, "use text or json") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestProfilesAreCompletedInTheShell(t *testing.T) {
	dir, _ := inRepository(t)
	t.Chdir(dir)
	for _, test := range []struct{ arguments, want []string }{
		{[]string{"lint", ""}, []string{"quickstart"}},
		{[]string{"lint", "x"}, nil},
		{[]string{"lint", "quickstart", ""}, nil},
		{[]string{"digest", "q"}, []string{"quickstart"}},
		{[]string{"show", "quickstart", "--format", "j"}, []string{"json"}},
	} {
		out := succeed(t, append([]string{"__complete", "profile"}, test.arguments...)...)
		var got []string
		for _, line := range strings.Split(out, "\n") {
			if line != "" && !strings.HasPrefix(line, ":") {
				got = append(got, line)
			}
		}
		if strings.Join(got, " ") != strings.Join(test.want, " ") {
			t.Errorf("%v completes to %v, want %v", test.arguments, got, test.want)
		}
	}
}
