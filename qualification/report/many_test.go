package report_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/report"
	"ptah.run/ptah/qualification/verdict"
)

// verdicts are one of each kind, so that a page built from them shows them all.
func verdicts(subject string) []verdict.Verdict {
	return []verdict.Verdict{
		verdict.Passed(), verdict.Passed(), verdict.Passed(), verdict.Passed(),
		verdict.New(verdict.Fail, verdict.Product, verdict.BoundExceeded, subject, "max of it over refresh is 28 requests, declared is at most 25"),
		verdict.New(verdict.Inconclusive, verdict.Harness, verdict.TooFewSamples, subject, "there are 7 samples of it, at least 20 are needed"),
		verdict.New(verdict.Void, verdict.Harness, verdict.WitnessMissing, subject, "nothing shows that the fault drift took effect"),
		verdict.New(verdict.Fail, verdict.Infrastructure, verdict.ScenarioFailed, subject, "the machine ran out of memory"),
	}
}

// stage is a run that was never made, for pages larger than any test could run.
type stage struct {
	dossier *dossier.Dossier
	input   judge.Judgement
}

func newStage(p *profile.Profile) *stage {
	return &stage{dossier: &dossier.Dossier{RunID: "20261129-181158", CreatedAt: dossiertest.Start, Root: dossiertest.Digest("a"), Profile: p, Harness: dossier.Harness{Commit: strings.Repeat("c", 40), Version: "test"}},
		input: judge.Judgement{Profile: judge.Identify(p)}}
}

// cell adds a cell with one verdict after the other. A cell that was not run leaves no evidence.
func (s *stage) cell(number int, cell matrix.Cell, run bool) {
	judged := judge.CellJudgement{Cell: cell, Scenarios: []judge.ScenarioVerdict{}, Targets: []judge.TargetVerdict{}}
	missing := verdict.New(verdict.NotRun, verdict.Harness, verdict.CellMissing, cell.Key, "it was not run: there is no machine of that platform")
	file := dossier.CellFile{Evidence: judge.Evidence{Cell: cell.Key}, Lab: dossier.Lab{ID: "lab", ClusterUID: "0b1e6f5e-6d35-4d8b-8b0e-1f6f0f6f7a11", KubernetesVersion: "v1.37.2", Platform: "linux/amd64", NativePlatform: number%2 == 0},
		Release: dossier.Release{Version: "0.3.0", Images: map[string]string{"manager": dossiertest.Digest("1"), "executor": dossiertest.Digest("3")}, ChartVersion: "0.3.0", ChartDigest: dossiertest.Digest("4")}}
	digests := []string{}
	for i, name := range []string{"suites/data-plane/ledger.jsonl", "audit/logs/control-plane-1/0.log", "audit/logs/control-plane-2/0.log"} {
		digest := evidence.Digest([]byte(fmt.Sprint(number, i)))
		digests = append(digests, digest)
		file.Files = append(file.Files, evidence.Entry{Name: name, Path: "objects/" + name, Digest: digest, Size: 123456, Kind: evidence.KindFile})
	}
	whole := []verdict.Verdict{}
	list := verdicts("subject")
	begin := dossiertest.Start.Add(time.Duration(number) * 20 * time.Minute)
	for i, declared := range s.dossier.Profile.ScenariosOf(cell.Matrix, cell.Axes) {
		v := missing
		if run {
			v = list[(number*number+i)%len(list)]
		}
		judged.Scenarios = append(judged.Scenarios, judge.ScenarioVerdict{Scenario: declared.Name, Requirement: declared.Requirement, Assertions: 12, Witnesses: i % 2, Verdict: v, Evidence: digests[:1]})
		whole = append(whole, v)
		from := begin.Add(time.Duration(i) * 40 * time.Second)
		file.Evidence.Ledgers = append(file.Evidence.Ledgers, judge.Ledger{Suite: "data-plane", Whole: true, Records: []scenario.Record{{Scenario: declared.Name, Start: from, End: from.Add(35 * time.Second), Ended: true, Outcome: scenario.OutcomePass}}})
	}
	for i, declared := range s.dossier.Profile.TargetsOf(cell.Matrix, cell.Axes) {
		v, value := missing, float64((number*7+i*3)%20)
		t := judge.TargetVerdict{Target: declared.ID, Requirement: declared.Requirement, Bound: declared.Bound.String(), Unit: declared.Unit}
		if run {
			v = list[(number+i*i)%len(list)]
			t.Value, t.N, t.Evidence = &value, 3, digests
			for j := range 3 {
				t.Samples = append(t.Samples, judge.Sample{Subject: fmt.Sprintf("team/orders-%d", j), From: begin, To: begin.Add(time.Second), Value: value + float64(j)})
			}
		}
		t.Verdict = v
		judged.Targets = append(judged.Targets, t)
		whole = append(whole, v)
	}
	judged.Verdict = verdict.Aggregate(whole...)
	if run {
		judged.Root, judged.InputDigest = dossiertest.Digest("b"), dossiertest.Digest("d")
		s.dossier.Cells = append(s.dossier.Cells, file)
	}
	s.input.Cells = append(s.input.Cells, judged)
}

func (s *stage) page() report.Page {
	byRequirement, whole := map[profile.Requirement][]verdict.Verdict{}, []verdict.Verdict{}
	for _, cell := range s.input.Cells {
		for _, v := range cell.Scenarios {
			byRequirement[v.Requirement] = append(byRequirement[v.Requirement], v.Verdict)
		}
		for _, v := range cell.Targets {
			byRequirement[v.Requirement] = append(byRequirement[v.Requirement], v.Verdict)
		}
		whole = append(whole, cell.Verdict)
	}
	for _, requirement := range s.dossier.Profile.Assessed() {
		s.input.Requirements = append(s.input.Requirements, judge.RequirementVerdict{Requirement: requirement, Verdict: verdict.Aggregate(byRequirement[requirement]...)})
	}
	s.input.Verdict = verdict.Aggregate(whole...)
	return report.Build(s.dossier, s.input)
}

func decode(t testing.TB, name string) *profile.Profile {
	t.Helper()
	path := filepath.Join("..", "..", "profiles", name+".yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Decode(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// production is a run of the production profile in which a third of the cells was not run.
func production(t testing.TB) report.Page {
	t.Helper()
	s := newStage(decode(t, "production"))
	cells, err := dossier.Expected(s.dossier.Profile, func(name string) (*matrix.Matrix, error) {
		path := filepath.Join("..", "..", "matrices", name+".yaml")
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return matrix.Decode(path, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, cell := range cells {
		s.cell(i, cell, i%3 != 2)
	}
	return s.page()
}

// large is a run of 100 cells with 40 targets and 20 scenarios each.
func large(t testing.TB, cells int) report.Page {
	t.Helper()
	p := decode(t, "quickstart")
	target, behaviour := p.Targets[0], p.Scenarios[0]
	target.Cells, behaviour.Cells = profile.Selection{Matrix: "functional"}, profile.Selection{Matrix: "functional"}
	p.Targets, p.Scenarios = nil, nil
	requirements := profile.Requirements()
	for i := range 40 {
		target.ID, target.Requirement = fmt.Sprintf("requests-per-operation-%d", i), requirements[i%12]
		p.Targets = append(p.Targets, target)
	}
	for i := range 20 {
		behaviour.Name, behaviour.Requirement = fmt.Sprintf("converge-from-empty-after-approval-%d", i), requirements[i%12]
		p.Scenarios = append(p.Scenarios, behaviour)
	}
	s := newStage(p)
	for i := range cells {
		s.cell(i, matrix.Cell{Matrix: "functional", Key: fmt.Sprintf("data-plane.kubernetes-1.37.postgresql-17.linux-amd64.%d", i), Axes: map[string]string{"suite": "data-plane"}}, i%9 != 8)
	}
	return s.page()
}

func TestAllRenderingsNameEveryVerdict(t *testing.T) {
	pages := map[string]report.Page{"production": production(t), "large": large(t, 12), "one cell": page(t, troubled(t))}
	for name, p := range pages {
		rendered := render(t, p)
		for _, need := range p.Requirements {
			for _, item := range need.Items {
				part, row := htmlOf(rendered[report.HTMLName], item), rowsOf(rendered[report.MarkdownName], item)
				for _, result := range item.Results {
					what := fmt.Sprintf("%s: %s of %s in %s", name, result.Verdict, item.Name, result.Cell)
					if !inHTML(part, result) {
						t.Errorf("HTML lacks %s", what)
					}
					if !inMarkdown(row[result.Cell], result) {
						t.Errorf("Markdown lacks %s", what)
					}
				}
			}
		}
		sameInJUnit(t, name, p, rendered[report.JUnitName])
	}
}

// htmlOf is the part of the page that is about an item.
func htmlOf(text string, item report.Item) string {
	_, part, _ := strings.Cut(text, fmt.Sprintf(`id="%s-%s"`, item.Kind, item.Name))
	part, _, _ = strings.Cut(part, "</article>")
	return part
}

// inHTML looks for a result: its cell, its number, its state and its reasons.
func inHTML(part string, result report.Result) bool {
	state := strings.ReplaceAll(string(result.Verdict.State), "not-run", "not run")
	for _, reason := range result.Verdict.Reasons {
		if !strings.Contains(part, html.EscapeString(reason.Message)) || !strings.Contains(part, string(reason.Code)) {
			return false
		}
	}
	return strings.Contains(part, result.Cell) && strings.Contains(part, html.EscapeString(result.Number)) && (strings.Contains(part, state) || strings.Contains(part, "Passed in"))
}

// rowsOf returns the rows of the table of an item in Markdown, by cell.
func rowsOf(text string, item report.Item) map[string]string {
	_, part, _ := strings.Cut(text, "#### "+item.Name+":")
	part, _, _ = strings.Cut(part, "\n#")
	rows := map[string]string{}
	for line := range strings.Lines(part) {
		if cell, _, found := strings.Cut(strings.TrimPrefix(line, "| "), " |"); found {
			rows[cell] = line
		}
	}
	return rows
}

func inMarkdown(row string, result report.Result) bool {
	return strings.Contains(row, result.Number) && strings.Contains(row, "| "+result.Verdict.String())
}

func sameInJUnit(t *testing.T, name string, p report.Page, text string) {
	t.Helper()
	type problem struct {
		Type string `xml:"type,attr"`
	}
	var parsed struct {
		Cases []struct {
			Class   string   `xml:"classname,attr"`
			Name    string   `xml:"name,attr"`
			Failure *problem `xml:"failure"`
			Error   *problem `xml:"error"`
			Skipped *problem `xml:"skipped"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{}
	for _, c := range parsed.Cases {
		state := "pass"
		for _, problem := range []*problem{c.Failure, c.Error, c.Skipped} {
			if problem != nil {
				state = problem.Type
			}
		}
		cases[c.Class+" "+c.Name] = state
	}
	for _, need := range p.Requirements {
		if need.Verdict != nil && cases[report.RequirementsSuite+" "+string(need.ID)] != need.Verdict.String() {
			t.Errorf("%s: JUnit says %q of %s", name, cases[report.RequirementsSuite+" "+string(need.ID)], need.ID)
		}
		for _, item := range need.Items {
			for _, result := range item.Results {
				if got := cases[result.Cell+"."+item.Kind+" "+item.Name]; got != result.Verdict.String() {
					t.Errorf("%s: JUnit says %q of %s in %s, it is %s", name, got, item.Name, result.Cell, result.Verdict)
				}
			}
		}
	}
	for _, cell := range p.Cells {
		if got := cases[cell.Key+" cell"]; got != cell.Verdict.String() {
			t.Errorf("%s: JUnit says %q of cell %s", name, got, cell.Key)
		}
	}
}

func TestEveryRequirementHasALineWhateverItsStanding(t *testing.T) {
	p := production(t)
	if len(p.Requirements) != 12 {
		t.Fatalf("%d requirements", len(p.Requirements))
	}
	rendered := render(t, p)
	for i, need := range p.Requirements {
		if need.ID != profile.Requirement(fmt.Sprintf("PA-%02d", i+1)) {
			t.Errorf("%s is at place %d", need.ID, i)
		}
		if !strings.Contains(rendered[report.HTMLName], fmt.Sprintf(`<span class="id">%s</span>`, need.ID)) || !strings.Contains(rendered[report.MarkdownName], "| "+string(need.ID)+" |") {
			t.Errorf("%s has no line", need.ID)
		}
	}
	quick := page(t, dossiertest.Passing(t))
	for _, need := range quick.Requirements {
		if (need.Verdict == nil) != (need.Standing != report.Assessed) {
			t.Errorf("%s is %s and has the verdict %v", need.ID, need.Standing, need.Verdict)
		}
	}
}

func TestAnExcludedRequirementIsNoPass(t *testing.T) {
	p := decode(t, "production")
	p.Exclusions = []profile.Exclusion{{Requirement: "PA-07", Scope: "linux/arm64", Reason: "no <machine> is there"}}
	s := newStage(p)
	built := s.page()
	rendered := render(t, built)
	for _, file := range []string{report.HTMLName, report.MarkdownName} {
		if !strings.Contains(rendered[file], "PA-07 (Operator and database state can be restored) is excluded for linux/arm64: no &lt;machine") {
			t.Errorf("%s does not say what is excluded", file)
		}
	}
	if built.Meets || !strings.Contains(rendered[report.HTMLName], "No cell is declared") {
		t.Error("a run without a cell is accepted, or its page does not say that there is none")
	}
}

func TestCellsThatWereNotRunAreSaidOnce(t *testing.T) {
	p := large(t, 100)
	text := render(t, p)[report.HTMLName]
	if got := strings.Count(text, "it was not run: there is no machine of that platform"); got > 2*60+9 {
		t.Errorf("the reason of 11 cells stands %d times", got)
	}
	if !strings.Contains(text, "11 of 100 declared cells were not run") || !strings.Contains(text, "emulated platform") {
		t.Error("the limits do not say what was left out")
	}
}

func TestALargePageStaysUnderFiveMegabytes(t *testing.T) {
	rendered := render(t, large(t, 100))
	for name, text := range rendered {
		t.Logf("%s: %d bytes", name, len(text))
	}
	if size := len(rendered[report.HTMLName]); size > 5_000_000 {
		t.Errorf("the page has %d bytes", size)
	}
}

func BenchmarkLargePage(b *testing.B) {
	p := large(b, 100)
	for b.Loop() {
		files, err := report.Files(p)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(files[1].Data)), "HTML-bytes")
	}
}

// evil are names that break a page that does not escape them.
var evil = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='x`, "]]>&amp;<!--", `javascript:alert(1)`, "| a | b |\n# heading\n- item", "\x00\x07\u202e", strings.Repeat("W", 300), `{{.Root}}`, "`code` [link](http://x)"}

func TestEvilNamesAreNeverMarkup(t *testing.T) {
	for _, name := range evil {
		p := evilPage(name)
		rendered := render(t, p)
		text := rendered[report.HTMLName]
		for _, bad := range []string{"<script", "<img", " onerror=alert(1)>", `' onmouseover='`, "<!--"} {
			if strings.Contains(text, bad) {
				t.Errorf("%q: the page holds %s", name, bad)
			}
		}
		if strings.Contains(text, `href="javascript:`) {
			t.Errorf("%q: the page links to a script", name)
		}
		for line := range strings.Lines(rendered[report.MarkdownName]) {
			if strings.Contains(line, "<script") || strings.Contains(line, "<img") || strings.HasPrefix(line, "# heading") || strings.HasPrefix(line, "- item") || strings.Contains(line, "[link](") {
				t.Errorf("%q: Markdown holds %q", name, line)
			}
		}
		if err := xml.Unmarshal([]byte(rendered[report.JUnitName]), new(struct{})); err != nil {
			t.Errorf("%q: JUnit does not parse: %v", name, err)
		}
		if !json.Valid([]byte(rendered[report.InputName])) {
			t.Errorf("%q: the input is no JSON", name)
		}
	}
}

// evilPage is a page in which everything that comes from outside is one name.
func evilPage(name string) report.Page {
	limit, value := 5.0, 4.0
	v := verdict.New(verdict.Fail, verdict.Cause(name), verdict.Code(name), name, "%s", name)
	result := report.Result{Cell: name, Number: name, Verdict: v, Samples: []judge.Sample{{Subject: name, Value: value}, {Subject: name, Value: 2 * value}}, Evidence: []report.Reference{{Name: name, Digest: name}}}
	second := result
	second.Cell = name + "2"
	passing := report.Result{Cell: name, Number: name, Verdict: verdict.Passed()}
	state := report.State{State: verdict.Fail, Cause: verdict.Cause(name)}
	items := []report.Item{
		{Kind: report.KindTarget, Name: name, Statement: name, Measured: name, Unit: profile.Unit(name), Bound: profile.Bound{AtMost: &limit}, Verdict: state, Results: []report.Result{result, second, passing}},
		{Kind: report.KindScenario, Name: name, Statement: name, Verdict: state, Results: []report.Result{result}},
	}
	bar := report.Bar{Scenario: name, From: dossiertest.Start, To: dossiertest.At(9), State: verdict.State(name), Marks: []report.Mark{{At: dossiertest.At(1), Kind: "failed", Text: name}},
		Measured: []scenario.Measurement{{Population: name, Subject: name, From: dossiertest.Start, To: dossiertest.At(2)}}}
	cell := report.Cell{Key: name, Axes: map[string]string{name: name}, Verdict: v, InputDigest: name, Root: name, ImageSource: name, Timeline: []report.Bar{bar}, Files: []evidence.Entry{{Name: name, Digest: name}},
		Lab: dossier.Lab{ID: name, ClusterUID: name, KubernetesVersion: name, Platform: name, Images: map[string]dossier.LabImage{name: {Source: name, Digest: name, Version: name}}}}
	other := cell
	other.Key = name + "2"
	return report.Page{Schema: report.Schema, Profile: judge.ProfileIdentity{Name: name, Purpose: profile.Purpose(name), Digest: name}, Summary: name, Run: name, Started: dossiertest.Start, Root: name,
		Release: dossier.Release{Version: name, Images: map[string]string{name: name}, ChartVersion: name, ChartDigest: name}, Harness: dossier.Harness{Commit: name}, Verdict: v, Notice: "notice", Answer: name,
		Limits: []string{name}, Requirements: []report.Requirement{{ID: "PA-08", Title: name, Standing: report.Assessed, Verdict: &v, Items: items, Exclusions: []profile.Exclusion{{Requirement: "PA-08", Scope: name, Reason: name}}}},
		Cells: []report.Cell{cell, other}}
}

// TestAConcernCountsTheCellsOfItsVerdict has a scenario that failed in one cell, and was not run or decided nothing in two
// more: those are not said to have failed.
func TestAConcernCountsTheCellsOfItsVerdict(t *testing.T) {
	s := newStage(decode(t, "quickstart"))
	s.dossier.Profile.Scenarios[0].Cells = profile.Selection{Matrix: "functional"}
	s.dossier.Profile.Scenarios, s.dossier.Profile.Targets = s.dossier.Profile.Scenarios[:1], nil
	for i := range 3 {
		s.cell(i, matrix.Cell{Matrix: "functional", Key: fmt.Sprint("cell-", i), Axes: map[string]string{"suite": "data-plane"}}, i < 2)
	}
	product := verdict.New(verdict.Fail, verdict.Product, verdict.ScenarioFailed, "it", "a row was lost")
	undecided := verdict.New(verdict.Inconclusive, verdict.Harness, verdict.TooFewSamples, "it", "too few")
	for i, v := range []verdict.Verdict{undecided, product} {
		s.input.Cells[i].Scenarios[0].Verdict = v
	}
	rendered := render(t, s.page())
	for name, want := range map[string]string{report.MarkdownName: "fail (product) in 1 cell, and no pass in 2 more: a row was lost", report.HTMLName: " in 1 cell, and no pass in 2 more<br>"} {
		if !strings.Contains(rendered[name], want) {
			t.Errorf("%s lacks %q", name, want)
		}
	}
	s.input.Cells[0].Scenarios[0].Verdict, s.input.Cells[2].Scenarios[0].Verdict = product, product
	if text := render(t, s.page())[report.MarkdownName]; !strings.Contains(text, "fail (product) in 3 cells: a row was lost") {
		t.Error("three cells of one verdict are not counted together")
	}
}
