package command

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
)

const smallClaims = `apiVersion: qualification.ptah.run/v1
kind: Claims
shipped: {include: [operator/, chart/app/], except: ["*_test.go"]}
chart: chart/app/
images:
  - {name: manager, paths: [operator/]}
claims:
  - {name: authorized-work, requirement: PA-02, statement: Only approved work runs., repeat: {paths: [operator/schema/], policies: [quickstart]}}
  - {name: restore, requirement: PA-07, statement: Backups restore., repeat: {paths: [operator/api/]}, review: {images: [manager], paths: [chart/app/]}}
`

// history is a git repository of a small product. Each name is a tag.
type history struct {
	t   *testing.T
	dir string
}

func (h history) git(arguments ...string) string {
	h.t.Helper()
	command := exec.CommandContext(context.Background(), "git", append([]string{"-C", h.dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false",
		"-c", "init.defaultBranch=main", "-c", "tag.gpgsign=false"}, arguments...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		h.t.Fatalf("git %v: %v: %s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, given as path and content in turn, and tags the commit. An empty content removes the file.
func (h history) commit(tag string, files ...string) {
	h.t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(h.dir, files[i])
		if files[i+1] == "" {
			if err := os.Remove(path); err != nil {
				h.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
	h.git("add", "--all")
	h.git("commit", "--quiet", "--allow-empty", "--message", tag)
	h.git("tag", tag)
}

func (h history) id(name string) string { return h.git("rev-parse", name) }

func newHistory(t *testing.T) history {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("not-run: there is no git on this machine")
	}
	h := history{t: t, dir: t.TempDir()}
	h.git("init", "--quiet")
	profile := string(dossiertest.Passing(t).Profile)
	h.commit("v1", "support/claims.yaml", smallClaims, "operator/schema/a.go", "a", "operator/runner/r.go", "r", "chart/app/values.yaml", "v", "profiles/quickstart.yaml", profile)
	h.commit("harness-fix", "qualification/judge.go", "fixed", "operator/schema/a_test.go", "test")
	h.commit("runner-change", "operator/runner/r.go", "r2")
	h.commit("schema-change", "operator/schema/a.go", "a2")
	h.commit("shorter-list", "support/claims.yaml", strings.NewReplacer("include: [operator/, ", "include: [operator/api/, operator/schema/, ", "paths: [operator/]", "paths: [operator/api/]").Replace(smallClaims))
	h.git("checkout", "--quiet", "--detach", "v1")
	h.commit("aside", "README.md", "aside")
	h.git("checkout", "--quiet", "v1")
	return h
}

func TestTheAncestryOfTheHarnessIsAskedOfGit(t *testing.T) {
	h := newHistory(t)
	cases := map[string]struct {
		release, harness string
		dirty            bool
		want             string
	}{
		"should accept the commit of the release":           {"v1", "v1", false, ": pass\n"},
		"should accept a later fix of the harness":          {"v1", "harness-fix", false, ": pass\n"},
		"should refuse a harness that changes the product":  {"v1", "runner-change", false, ": void (harness)\n"},
		"should refuse a harness from before the release":   {"harness-fix", "v1", false, ": void (harness)\n"},
		"should refuse a harness of another line":           {"harness-fix", "aside", false, ": void (harness)\n"},
		"should refuse a tree that was changed":             {"v1", "harness-fix", true, ": void (harness)\n"},
		"should accept a fix on top of a change it follows": {"runner-change", "runner-change", false, ": pass\n"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			c := dossiertest.Passing(t)
			c.Facts.Harness.Commit, c.Facts.Harness.Dirty = h.id(test.harness), test.dirty
			q := qualifyCase(t, c)
			bound := filepath.Join(t.TempDir(), "record.json")
			succeed(t, "record", "create", "--run", q.run, "--output", bound, "--repository", h.dir, "--release-commit", test.release)
			succeed(t, "record", "sign", "--record", bound, "--key", q.key)
			out := succeed(t, "record", "verify", "--record", bound, "--key", q.public, "--run", q.run, "--repository", h.dir)
			want := "harness: " + h.id(test.harness) + "; its ancestry from release commit " + h.id(test.release) + test.want
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q: %s", want, out)
			}
		})
	}
}

func TestALaterListOfWhatIsShippedCannotShortenThatOfTheRelease(t *testing.T) {
	h := newHistory(t)
	h.git("checkout", "--quiet", "shorter-list")
	ancestry, err := relateIn(context.Background(), h.dir, "v1", "shorter-list", false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(ancestry.Changed, " ") != "operator/runner/r.go operator/schema/a.go" || ancestry.Verdict.Satisfies() {
		t.Errorf("changed %v, %s", ancestry.Changed, ancestry.Verdict)
	}
}

func TestAnAncestryThatCannotBeToldIsRefused(t *testing.T) {
	h := newHistory(t)
	c := dossiertest.Passing(t)
	c.Facts.Harness.Commit = h.id("harness-fix")
	run := c.Store(t)
	c.Facts.Release.Commit = h.id("v1")
	named := c.Store(t)
	c.Facts.Harness.Commit = ""
	homeless := c.Store(t)
	stranger := dossiertest.Passing(t).Store(t) // of a commit that the repository does not have
	shallow := filepath.Join(t.TempDir(), "shallow")
	h.git("clone", "--quiet", "--depth", "2", "--branch", "harness-fix", "file://"+h.dir, shallow)
	full, err := os.ReadFile(filepath.Join(h.dir, "support", "claims.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	plain := t.TempDir()
	if err := os.MkdirAll(filepath.Join(plain, "support"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(plain, "support", "claims.yaml"), full, 0o644); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "record.json")
	cases := map[string]struct {
		run, repository, release string
		code                     int
		want                     string
	}{
		"should refuse a release that nobody names":      {run, h.dir, "", ExitUsage, "name it with --release-commit"},
		"should refuse an unknown release":               {run, h.dir, "v9", ExitUsage, `has no commit "v9"`},
		"should refuse a release that looks like a flag": {run, h.dir, "--all", ExitUsage, `has no commit "--all"`},
		"should refuse an unknown harness":               {stranger, h.dir, "v1", ExitUsage, "has no commit"},
		"should refuse a harness without a commit":       {homeless, h.dir, "v1", ExitNotEstablished, "which commit the harness was"},
		"should refuse a shallow clone":                  {run, shallow, "v1", ExitUsage, "shallow clone"},
		"should refuse a folder without a repository":    {run, plain, "v1", ExitUsage, "has no commit"},
		"should refuse a folder without claims":          {run, t.TempDir(), "v1", ExitUsage, "there is no file"},
		"should refuse a release without a repository":   {run, "", "v1", ExitUsage, "says nothing without --repository"},
		"should refuse another release than tested":      {named, h.dir, "harness-fix", ExitNotEstablished, "tested a release built from commit"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			arguments := []string{"record", "create", "--run", test.run, "--output", output, "--repository", test.repository, "--release-commit", test.release}
			code, _, errs := qualify(t, arguments...)
			if code != test.code || !strings.Contains(errs, test.want) || strings.Contains(errs, "\n") {
				t.Errorf("exit code %d, want %d; said %q, want %q", code, test.code, errs, test.want)
			}
		})
	}
	if _, err := os.Stat(output); err == nil {
		t.Error("a record was written")
	}
	succeed(t, "record", "create", "--run", named, "--output", output, "--repository", h.dir) // control: the evidence names the release
	tip := filepath.Join(t.TempDir(), "tip")
	h.git("clone", "--quiet", "--depth", "1", "--branch", "harness-fix", "file://"+h.dir, tip)
	succeed(t, "record", "create", "--run", run, "--output", output, "--repository", tip, "--release-commit", "harness-fix") // one commit needs no history
}

func TestTheAncestryIsLeftOutWhereTheTreeIsNoCommit(t *testing.T) {
	h := newHistory(t)
	c := dossiertest.Passing(t)
	c.Facts.Harness.Commit = h.id("v1")
	for release, want := range map[string]bool{"": false, h.id("v1"): true} {
		c.Facts.Release.Commit = release
		d, err := LoadRun(c.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		ancestry, err := ancestryWhereKnown(context.Background(), h.dir, d)
		if err != nil || (ancestry != nil) != want || (want && !ancestry.Verdict.Satisfies()) {
			t.Errorf("release %q: %+v, %v", release, ancestry, err)
		}
	}
}

func TestImpactAndReviews(t *testing.T) {
	h := newHistory(t)
	keys := t.TempDir()
	succeed(t, "record", "key", "generate", "--output", keys)
	private, public := filepath.Join(keys, privateName), filepath.Join(keys, publicName)
	impact := func(from, to string, more ...string) (int, string, string) {
		return qualify(t, append([]string{"record", "impact", "--repository", h.dir, "--from", from, "--to", to}, more...)...)
	}
	for name, test := range map[string]struct{ from, to, want string }{
		"a fix of the harness":  {"v1", "harness-fix", "0 changes of what is shipped"},
		"a change to review":    {"v1", "runner-change", "review   PA-07        restore          path operator/runner/r.go changed"},
		"a change to show anew": {"v1", "schema-change", "repeat   PA-02        authorized-work  path operator/schema/a.go changed"},
	} {
		if code, out, errs := impact(test.from, test.to); code != ExitPass || !strings.Contains(out, test.want) || !strings.Contains(out, "not compared, because one side does not know them: images, chart, platforms") {
			t.Errorf("%s: exit code %d, %s%s", name, code, out, errs)
		}
	}
	if code, _, errs := impact("v1", "runner-change", "--strict"); code != ExitNotEstablished || !strings.Contains(errs, "1 of 2 claims must be shown again or reviewed") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	file := filepath.Join(keys, "restore.review.json")
	review := func(claim, from, to, reason string) (int, string, string) {
		return qualify(t, "record", "review", "--repository", h.dir, "--claim", claim, "--from", from, "--to", to, "--by", "A Person", "--reason", reason, "--key", private, "--output", file)
	}
	reason := "The runner logs more, and no restore step reads its log."
	for want, refused := range map[string][]string{
		"nothing to review":           {"restore", "v1", "harness-fix", reason},
		"cannot be reviewed":          {"authorized-work", "v1", "schema-change", reason},
		"the reason has 4 characters": {"restore", "v1", "runner-change", "fine"},
		"there is no claim":           {"other", "v1", "runner-change", reason},
		`has no commit "v9"`:          {"restore", "v1", "v9", reason},
		"must name two releases":      {"restore", "v1", "v1", reason},
	} {
		if code, _, errs := review(refused[0], refused[1], refused[2], refused[3]); code != ExitUsage || (!strings.Contains(errs, want) && !strings.Contains(errs, "nothing to review")) {
			t.Errorf("exit code %d, %q, want %q", code, errs, want)
		}
	}
	if isFile(file) {
		t.Fatal("a refused review was written")
	}
	if code, out, errs := review("restore", "v1", "runner-change", reason); code != ExitPass || !strings.Contains(out, "claim restore, 1 changes reviewed") {
		t.Fatalf("exit code %d, %s%s", code, out, errs)
	}
	if out := succeed(t, "record", "review", "verify", "--review", file, "--key", public); !strings.Contains(out, "by: A Person") || !strings.Contains(out, reason) {
		t.Errorf("%s", out)
	}
	if code, out, errs := impact("v1", "runner-change", "--strict", "--review", file, "--verify-key", public); code != ExitPass || !strings.Contains(out, "reviewed") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	if code, _, errs := impact("v1", "schema-change", "--review", file, "--verify-key", public); code != ExitVerificationFailed || !strings.Contains(errs, "it reviews the change from v1") {
		t.Errorf("a review of another change: exit code %d, %s", code, errs)
	}
	if code, _, errs := impact("v1", "runner-change", "--review", damaged(t, file), "--verify-key", public); code != ExitVerificationFailed {
		t.Errorf("an altered review: exit code %d, %s", code, errs)
	}
	if code, _, errs := impact("v1", "runner-change", "--review", file); code != ExitUsage || !strings.Contains(errs, "--verify-key") {
		t.Errorf("a review without a key: exit code %d, %s", code, errs)
	}
	if out := succeed(t, "record", "impact", "--repository", h.dir, "--from", "v1", "--to", "runner-change", "--format", "json"); !strings.Contains(out, `"action": "review"`) {
		t.Errorf("%s", out)
	}
}

func TestImpactBetweenRecords(t *testing.T) {
	h := newHistory(t)
	made := func(commit, image string) qualified {
		c := dossiertest.Passing(t)
		c.Facts.Harness.Commit, c.Facts.Release.Commit = h.id(commit), h.id(commit)
		c.Facts.Release.Images = map[string]string{"manager": dossiertest.Digest(image), "runner": dossiertest.Digest("2"), "executor": dossiertest.Digest("3")}
		q := qualifyCase(t, c)
		if err := os.Remove(q.record); err != nil {
			t.Fatal(err)
		}
		succeed(t, "record", "create", "--run", q.run, "--output", q.record, "--repository", h.dir)
		succeed(t, "record", "sign", "--record", q.record, "--key", q.key)
		return q
	}
	before, after := made("v1", "1"), made("harness-fix", "9")
	arguments := []string{"record", "impact", "--repository", h.dir, "--from", before.record, "--to", after.record}
	out := succeed(t, append(arguments, "--verify-key", before.public, "--verify-key", after.public)...)
	if !strings.Contains(out, "1 changes of what is shipped") || !strings.Contains(out, "image manager changed") || strings.Contains(out, "not compared") {
		t.Errorf("%s", out)
	}
	if code, _, errs := qualify(t, arguments...); code != ExitUsage || !strings.Contains(errs, "with --verify-key") {
		t.Errorf("records without a key: exit code %d, %s", code, errs)
	}
	if code, _, errs := qualify(t, append(arguments, "--verify-key", before.public)...); code != ExitVerificationFailed {
		t.Errorf("a record by a stranger: exit code %d, %s", code, errs)
	}
}
