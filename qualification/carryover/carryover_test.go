package carryover_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/verdict"
)

const base = `apiVersion: qualification.ptah.run/v1
kind: Claims
shipped:
  include: [operator/, chart/app/, go.mod]
  except: ["*_test.go", testdata/]
chart: chart/app/
images:
  - {name: manager, paths: [operator/schema/, go.mod]}
  - {name: runner, paths: [operator/runner/]}
claims:
  - name: authorized-work
    requirement: PA-02
    statement: Only approved work runs.
    repeat: {paths: [operator/schema/], policies: [production], platforms: [linux/amd64]}
    review: {images: [manager, runner], paths: [chart/app/]}
  - name: restore
    requirement: PA-07
    statement: Backups restore.
    repeat: {paths: [operator/api/]}
    review: {images: [runner]}
`

func decode(t testing.TB, text string) *carryover.Claims {
	t.Helper()
	c, err := carryover.Decode("claims.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func repository(t testing.TB) (*carryover.Claims, string) {
	t.Helper()
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, "support", "claims.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(data)), root
}

func path(name string) carryover.Change {
	return carryover.Change{Kind: carryover.ChangedPath, Subject: name, Before: "a", After: "b"}
}

func actions(c *carryover.Claims, changes ...carryover.Change) string {
	var list []string
	for _, reached := range c.Impact(changes) {
		list = append(list, fmt.Sprintf("%s:%s:%d", reached.Claim.Name, reached.Action, len(reached.Because)))
	}
	return strings.Join(list, " ")
}

func TestAChangeReachesTheClaimsThatDependOnIt(t *testing.T) {
	image := func(role string) carryover.Change {
		return carryover.Change{Kind: carryover.ChangedImage, Subject: role, Before: "sha256:1", After: "sha256:2"}
	}
	of := func(kind carryover.ChangeKind, subject string) carryover.Change {
		return carryover.Change{Kind: kind, Subject: subject, Before: "1", After: "2"}
	}
	cases := map[string]struct {
		changes []carryover.Change
		want    string
	}{
		"should leave every claim standing when nothing changed":                   {nil, "authorized-work:stands:0 restore:stands:0"},
		"should repeat what a changed file takes away":                             {[]carryover.Change{path("operator/schema/a.go")}, "authorized-work:repeat:1 restore:stands:0"},
		"should review what an image is built from":                                {[]carryover.Change{path("operator/runner/a.go")}, "authorized-work:review:1 restore:review:1"},
		"should review an image of another digest":                                 {[]carryover.Change{image("runner")}, "authorized-work:review:1 restore:review:1"},
		"should review only the claims of that image":                              {[]carryover.Change{image("manager")}, "authorized-work:review:1 restore:stands:0"},
		"should reach every claim by a shipped file that no claim names":           {[]carryover.Change{path("operator/new/a.go")}, "authorized-work:review:1 restore:review:1"},
		"should reach every claim by an image that no claim names":                 {[]carryover.Change{image("rotator")}, "authorized-work:review:1 restore:review:1"},
		"should reach every claim by an unnamed file beside a named one":           {[]carryover.Change{path("operator/new/a.go"), path("operator/schema/a.go")}, "authorized-work:repeat:2 restore:review:1"},
		"should not take a folder for another one with the same beginning":         {[]carryover.Change{path("operator/schemata/a.go")}, "authorized-work:review:1 restore:review:1"},
		"should repeat after a change of the profile":                              {[]carryover.Change{of(carryover.ChangedPolicy, "production")}, "authorized-work:repeat:1 restore:stands:0"},
		"should not care about a profile that no claim was judged under":           {[]carryover.Change{of(carryover.ChangedPolicy, "development")}, "authorized-work:stands:0 restore:stands:0"},
		"should repeat after a change of the platform":                             {[]carryover.Change{of(carryover.ChangedPlatform, "linux/amd64")}, "authorized-work:repeat:1 restore:stands:0"},
		"should review a chart of which only the digest is known":                  {[]carryover.Change{of(carryover.ChangedChart, "ptah-operator")}, "authorized-work:review:1 restore:stands:0"},
		"should let a repeat win over a review, and name both changes as a reason": {[]carryover.Change{image("runner"), path("operator/schema/a.go")}, "authorized-work:repeat:2 restore:review:1"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if got := actions(decode(t, base), test.changes...); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestMoreChangesNeverAskForLess(t *testing.T) {
	c := decode(t, base)
	rank := map[carryover.Action]int{carryover.Stands: 0, carryover.Review: 1, carryover.Repeat: 2}
	pool := []carryover.Change{path("operator/schema/a.go"), path("operator/runner/b.go"), path("operator/api/c.go"), path("operator/x/d.go"), path("chart/app/values.yaml"), path("go.mod"),
		{Kind: carryover.ChangedImage, Subject: "manager", Before: "1", After: "2"}, {Kind: carryover.ChangedChart, Subject: "app", Before: "1", After: "2"},
		{Kind: carryover.ChangedPolicy, Subject: "production", Before: "1", After: "2"}, {Kind: carryover.ChangedPlatform, Subject: "linux/amd64", Before: "native", After: carryover.Absent}}
	random := rand.New(rand.NewSource(4))
	for range 2000 {
		random.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
		n := random.Intn(len(pool))
		fewer, more := c.Impact(slices.Clone(pool[:n])), c.Impact(slices.Clone(pool[:n+1]))
		for i := range fewer {
			if rank[more[i].Action] < rank[fewer[i].Action] {
				t.Fatalf("%s is %s after %v and %s after one change more", fewer[i].Claim.Name, fewer[i].Action, pool[:n], more[i].Action)
			}
		}
		if n > 0 && pool[0].Kind == carryover.ChangedPath && !slices.ContainsFunc(fewer, func(r carryover.Reached) bool { return r.Action != carryover.Stands }) {
			t.Fatalf("the shipped file %s changed and no claim is reached", pool[0].Subject)
		}
	}
}

func TestCompareSaysWhatItCouldNotCompare(t *testing.T) {
	c := decode(t, base)
	from := carryover.Side{Name: "a", Images: map[string]string{"manager": "1", "old": "1"}, Chart: map[string]string{"app": "1"}, Policies: map[string]string{"production": "1"}}
	to := carryover.Side{Name: "b", Images: map[string]string{"manager": "2", "new": "1"}, Chart: map[string]string{"app": "2"}, Platforms: map[string]string{"linux/amd64": "native"}}
	changes, unknown := c.Compare(from, to, nil)
	if got := strings.Join(unknown, " "); got != "files policies platforms" {
		t.Errorf("not compared: %q", got)
	}
	var said []string
	for _, change := range changes {
		said = append(said, change.String())
	}
	if got, want := strings.Join(said, ", "), "chart app changed, image manager changed, image new is new, image old is gone"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	changes, unknown = c.Compare(from, to, []carryover.Change{path("README.md"), path("operator/schema/a_test.go"), path("operator/testdata/x"), path("chart/app/values.yaml")})
	if len(changes) != 4 || changes[3].Subject != "chart/app/values.yaml" || slices.Contains(unknown, "files") {
		t.Errorf("files of the chart must stand for its digest and tests must not count: %v, not compared %v", changes, unknown)
	}
}

func TestAncestry(t *testing.T) {
	shipped := decode(t, base).Shipped
	relate := func(release, harness string, dirty, descends bool, files ...string) carryover.Ancestry {
		return carryover.Relate(release, harness, dirty, descends, shipped, files)
	}
	cases := map[string]struct {
		ancestry carryover.Ancestry
		state    verdict.State
		code     verdict.Code
	}{
		"should accept the commit of the release itself":               {relate("r", "r", false, true), verdict.Pass, ""},
		"should accept a descendant that changes only the harness":     {relate("r", "h", false, true, "qualification/x.go", "README.md"), verdict.Pass, ""},
		"should accept a descendant that changes tests of the product": {relate("r", "h", false, true, "operator/schema/x_test.go", "operator/a/testdata/b/c.sql"), verdict.Pass, ""},
		"should refuse a harness that changes a shipped file":          {relate("r", "h", false, true, "qualification/x.go", "operator/schema/x.go"), verdict.Void, carryover.HarnessReachesOut},
		"should refuse a harness that changes the dependencies":        {relate("r", "h", false, true, "go.mod"), verdict.Void, carryover.HarnessReachesOut},
		"should refuse a harness of another line":                      {relate("r", "h", false, false), verdict.Void, carryover.HarnessElsewhere},
		"should refuse a changed tree":                                 {relate("r", "r", true, true), verdict.Void, carryover.HarnessDirty},
		"should not establish an unknown release":                      {relate("", "h", false, true), verdict.Inconclusive, carryover.AncestryUnknown},
		"should not establish an unknown harness":                      {relate("r", "", false, true), verdict.Inconclusive, carryover.AncestryUnknown},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			v := test.ancestry.Verdict
			if v.State != test.state || (test.code != "" && (len(v.Reasons) != 1 || v.Reasons[0].Code != test.code)) {
				t.Errorf("got %s %v, want %s %s", v, v.Reasons, test.state, test.code)
			}
		})
	}
	if both := carryover.Union(carryover.Paths{Include: []string{"a/"}}, shipped); !both.Matches("a/x_test.go") || !both.Matches("go.mod") || both.Matches("b") || both.Digest() == shipped.Digest() {
		t.Error("a union must select what either selects, and be another declaration")
	}
	if carryover.Union(shipped).Digest() != shipped.Digest() {
		t.Error("a union of one set must be that set")
	}
}

func TestReviews(t *testing.T) {
	c := decode(t, base)
	runner := []carryover.Change{path("operator/runner/a.go")}
	good := func() carryover.Reviewed {
		return carryover.Reviewed{Claim: "restore", From: carryover.Side{Name: "v1", Commit: "1"}, To: carryover.Side{Name: "v2", Commit: "2"}, Changes: runner, Unknown: []string{"platforms"},
			Reason: "The runner only logs more; no restore step runs it differently.", By: "A Person <a@example.com>", At: time.Unix(1800000000, 0)}
	}
	review, err := c.NewReview(good())
	if err != nil {
		t.Fatal(err)
	}
	if err := review.Covers(c, runner); err != nil {
		t.Errorf("control: %v", err)
	}
	refusals := map[string]struct {
		change func(*carryover.Reviewed)
		want   string
	}{
		"should refuse an unknown claim":              {func(r *carryover.Reviewed) { r.Claim = "other" }, "use one of: authorized-work, restore"},
		"should refuse a claim that is not reached":   {func(r *carryover.Reviewed) { r.Changes = nil }, "nothing to review"},
		"should refuse a claim that must be repeated": {func(r *carryover.Reviewed) { r.Changes = append(r.Changes, path("operator/api/x.go")) }, "must be shown again and cannot be reviewed: path operator/api/x.go changed"},
		"should refuse a review without a reason":     {func(r *carryover.Reviewed) { r.Reason = "  looks fine   " }, "the reason has 10 characters"},
		"should refuse a review by nobody":            {func(r *carryover.Reviewed) { r.By = " " }, "say who reviewed"},
		"should refuse a name of two lines":           {func(r *carryover.Reviewed) { r.By = "a\nb" }, "on one line"},
		"should refuse a review without a time":       {func(r *carryover.Reviewed) { r.At = time.Time{} }, "has no time"},
		"should refuse a release against itself":      {func(r *carryover.Reviewed) { r.To = r.From }, "must name two releases"},
	}
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			r := good()
			test.change(&r)
			if _, err := c.NewReview(r); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	for name, change := range map[string]func(*carryover.ReviewStatement){
		"should refuse a statement about no claim":             func(r *carryover.ReviewStatement) { r.Claim = "" },
		"should refuse a statement that serves no requirement": func(r *carryover.ReviewStatement) { r.Requirement = "" },
		"should refuse a statement without the declaration":    func(r *carryover.ReviewStatement) { r.Claims = "" },
		"should refuse a statement about no change":            func(r *carryover.ReviewStatement) { r.Changes = nil },
		"should refuse a statement about no release":           func(r *carryover.ReviewStatement) { r.From.Name = "" },
	} {
		said := *review
		change(&said)
		if err := said.Validate(); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
	other := decode(t, strings.Replace(base, "Backups restore.", "All backups restore.", 1))
	for want, err := range map[string]error{
		"about other ones":          review.Covers(c, append(slices.Clone(runner), path("operator/runner/b.go"))),
		"about other ones (1)":      review.Covers(c, nil),
		"another declaration":       review.Covers(other, runner),
		"must be shown again":       review.Covers(c, append(slices.Clone(runner), path("operator/api/b.go"))),
		"there is no claim":         review.Covers(decode(t, strings.Replace(base, "name: restore", "name: other", 1)), runner),
		"is about other ones (1)":   review.Covers(c, []carryover.Change{{Kind: carryover.ChangedPath, Subject: "operator/runner/a.go", Before: "a", After: "c"}}),
		"claim restore is reached ": review.Covers(c, []carryover.Change{path("operator/runner/z.go")}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestDeclarationsThatSayTooLittleOrTooMuchAreRefused(t *testing.T) {
	_, claims, _ := strings.Cut(base, "claims:")
	cases := map[string]struct{ old, new, want string }{
		"should refuse another kind":                     {"kind: Claims", "kind: Suites", "kind: it must be Claims"},
		"should refuse another version":                  {"ptah.run/v1", "ptah.run/v9", "apiVersion: it must be"},
		"should refuse an unknown field":                 {"statement: Backups restore.", "statements: x", "did you mean statement?"},
		"should refuse an unknown requirement":           {"PA-07", "PA-13", "unknown"},
		"should refuse a claim without a requirement":    {"    requirement: PA-07\n", "", "name the requirement"},
		"should refuse a claim without a statement":      {"    statement: Backups restore.\n", "", "say what it claims"},
		"should refuse a claim twice":                    {"name: restore", "name: authorized-work", "claims[1].name: give each claim"},
		"should refuse a claim that depends on nothing":  {"    repeat: {paths: [operator/api/]}\n    review: {images: [runner]}\n", "", "would stand for ever"},
		"should refuse a dependence on what is not sent": {"[operator/api/]", "[qualification/]", "is not shipped"},
		"should refuse an image of unshipped files":      {"[operator/runner/]", "[docs/]", "is not shipped"},
		"should refuse an undeclared image":              {"images: [runner]", "images: [other]", `no image "other" is declared`},
		"should refuse an image twice":                   {"name: runner", "name: manager", "images[1].name"},
		"should refuse an image of nothing":              {"paths: [operator/runner/]", "paths: []", "say what the image is built from"},
		"should refuse a platform that is none":          {"[linux/amd64]", "[amd64]", "give a platform such as"},
		"should refuse a profile that is no name":        {"[production]", "[profiles/production.yaml]", "give the name of a profile"},
		"should refuse a pattern for a path":             {"[operator/api/]", `["operator/*"]`, "without patterns"},
		"should refuse a path out of the repository":     {"go.mod]\n  except", "../other]\n  except", "relative to the repository"},
		"should refuse a path twice":                     {"include: [operator/,", "include: [operator/, operator/,", "given twice"},
		"should refuse nothing shipped":                  {"include: [operator/, chart/app/, go.mod]", "include: []", "at least one folder or file"},
		"should refuse an exception of everything":       {"testdata/]", `"*"]`, "give the pattern of one name"},
		"should refuse an exception that is no pattern":  {"testdata/]", `"[a"]`, "give the pattern of one name"},
		"should refuse an exception of a path":           {"testdata/]", "operator/schema/]", "give the pattern of one name"},
		"should refuse a chart that is not shipped":      {"chart: chart/app/", "chart: charts/", "is not shipped"},
		"should refuse a declaration without claims":     {"claims:" + claims, "claims: []\n", "at least one claim"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(base, test.old, test.new, 1)
			if text == base {
				t.Fatal("the case changes nothing")
			}
			_, err := carryover.Decode("claims.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "claims.yaml") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one sentence with %q", err, test.want)
			}
		})
	}
}

func TestTheClaimsOfTheRepositoryNameEveryRequirementAndEveryShippedFile(t *testing.T) {
	c, root := repository(t)
	requirements := map[string]bool{}
	for _, claim := range c.Claims {
		requirements[string(claim.Requirement)] = true
	}
	if len(requirements) != 12 {
		t.Errorf("claims serve %d requirements, there are 12", len(requirements))
	}
	seen := 0
	for _, folder := range []string{"operator", "chart", "support"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, item os.DirEntry, err error) error {
			if err != nil || item.IsDir() {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil || !c.Shipped.Matches(filepath.ToSlash(relative)) {
				return err
			}
			seen++
			if !dependedOn(c, filepath.ToSlash(relative)) {
				t.Errorf("%s is shipped and no claim depends on it", relative)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 100 {
		t.Errorf("only %d shipped files were found", seen)
	}
}

// dependedOn says whether a claim names the file. One that no claim names shows by every claim being up for review.
func dependedOn(c *carryover.Claims, file string) bool {
	return slices.ContainsFunc(c.Impact([]carryover.Change{path(file)}), func(r carryover.Reached) bool { return r.Action != carryover.Review })
}

// TestImagesAreBuiltFromWhatIsDeclared follows the imports of each program: a package that an image is built from and
// that its declaration does not name would change the image without reaching a claim.
func TestImagesAreBuiltFromWhatIsDeclared(t *testing.T) {
	c, root := repository(t)
	programs := map[string]string{"manager": "operator/cmd/manager", "runner": "operator/cmd/ptah-runner", "executor": "operator/cmd/ptah"}
	for _, image := range c.Images {
		packages := map[string]bool{}
		follow(t, root, programs[image.Name], packages)
		if len(packages) < 3 {
			t.Errorf("image %s: only %d packages were found", image.Name, len(packages))
		}
		for name := range packages {
			if !(carryover.Paths{Include: image.Paths}).Matches(name + "/x.go") {
				t.Errorf("image %s is built from %s, which its paths do not name", image.Name, name)
			}
		}
		delete(programs, image.Name)
	}
	if len(programs) > 0 {
		t.Errorf("images without a declaration: %v", programs)
	}
}

func follow(t *testing.T, root, dir string, seen map[string]bool) {
	t.Helper()
	if seen[dir] {
		return
	}
	seen[dir] = true
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds no Go file: %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if inside, ours := strings.CutPrefix(imported, "ptah.run/ptah/"); ours {
				follow(t, root, inside, seen)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte("kind: Claims\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := carryover.Decode("f", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("a refusal is one sentence: %q", err)
			}
			return
		}
		for _, entry := range c.Shipped.Include {
			file := strings.TrimSuffix(entry, "/")
			if strings.HasSuffix(entry, "/") {
				file += "/x"
			}
			if !c.Shipped.Matches(file) {
				continue
			}
			if reached := c.Impact([]carryover.Change{path(file)}); !slices.ContainsFunc(reached, func(r carryover.Reached) bool { return r.Action != carryover.Stands }) {
				t.Fatalf("a change of the shipped %s reaches no claim", file)
			}
		}
	})
}
