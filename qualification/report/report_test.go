package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence"
	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/evidence/scenario"
	"ptah.run/ptah/qualification/report"
	"ptah.run/ptah/qualification/verdict"
)

func page(t *testing.T, c *dossiertest.Case) report.Page {
	t.Helper()
	d, err := dossier.Load(c.Store(t))
	if err != nil {
		t.Fatal(err)
	}
	return report.Build(d, d.Judge())
}

func render(t *testing.T, p report.Page) map[string]string {
	t.Helper()
	files, err := report.Files(p)
	if err != nil {
		t.Fatal(err)
	}
	rendered := map[string]string{}
	for _, file := range files {
		rendered[file.Name] = string(file.Data)
	}
	return rendered
}

// troubled is a case in which scenarios fail, are void and end early.
func troubled(t *testing.T) *dossiertest.Case {
	t.Helper()
	c := dossiertest.Passing(t)
	var list []scenario.Entry
	no := false
	for _, entry := range dossiertest.Entries() {
		switch {
		case entry.Scenario == "typed-approver-replaced" && entry.Event == scenario.EventWitness,
			entry.Scenario == "wrong-password-bounded-retry" && entry.Event == scenario.EventEnd:
			continue
		case entry.Scenario == "drift-seen-within-one-interval" && entry.Event == scenario.EventAssert:
			entry.Held, entry.Message = &no, `<script>alert("x")</script> | & ü`
		}
		list = append(list, entry)
	}
	c.Ledger = dossiertest.Stream(t, list...)
	return c
}

func TestTheSamePageGivesTheSameBytes(t *testing.T) {
	first, second := render(t, page(t, dossiertest.Passing(t))), render(t, page(t, dossiertest.Passing(t)))
	if len(first) != 4 {
		t.Fatalf("%d files", len(first))
	}
	for name := range first {
		if first[name] != second[name] {
			t.Errorf("%s differs between two renderings", name)
		}
	}
}

var outside = regexp.MustCompile(`(?i)<(script|link|img|iframe|object|embed|base|form)\b|\b(src|href|action|poster|data|srcset)\s*=\s*"?(https?:|//|data:|javascript:)|@import|url\(|https?://`)

func TestTheHTMLPageLoadsNothing(t *testing.T) {
	for name, c := range map[string]*dossiertest.Case{"passing": dossiertest.Passing(t), "troubled": troubled(t)} {
		html := render(t, page(t, c))[report.HTMLName]
		if found := outside.FindString(html); found != "" {
			t.Errorf("%s: the page holds %q", name, found)
		}
		for _, want := range []string{`<meta name="viewport"`, "default-src 'none'", "prefers-color-scheme: dark", "max-width: 640px", `lang="en"`} {
			if !strings.Contains(html, want) {
				t.Errorf("%s: the page lacks %q", name, want)
			}
		}
	}
	for _, bad := range []string{`<script>`, `<img src="https://x">`, `<a href="//x">`, `url(x)`, `@import "x"`} {
		if outside.FindString(bad) == "" {
			t.Errorf("control: the check does not see %q", bad)
		}
	}
}

func TestEveryRenderingSaysWhatItDoesNotShowAndHowItIsBound(t *testing.T) {
	for name, c := range map[string]*dossiertest.Case{"passing": dossiertest.Passing(t), "troubled": troubled(t)} {
		p := page(t, c)
		rendered := render(t, p)
		digest := evidence.Digest([]byte(rendered[report.InputName]))
		for _, file := range []string{report.HTMLName, report.MarkdownName} {
			text := rendered[file]
			for _, want := range append([]string{"What this does not show", "PA-03", "no acceptance", digest, p.Root, p.Profile.Digest, dossiertest.Digest("1"), dossiertest.Digest("4")}, p.Limits...) {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %s lacks %q", name, file, want)
				}
			}
		}
	}
}

func TestNumbersComeWithTheirCountAndEvidence(t *testing.T) {
	rendered := render(t, page(t, dossiertest.Passing(t)))
	for _, file := range []string{report.HTMLName, report.MarkdownName} {
		for _, want := range []string{"5 requests (n = 2), declared at most 25", "7 requests (n = 1), declared at most 40"} {
			if !strings.Contains(rendered[file], want) {
				t.Errorf("%s lacks %q", file, want)
			}
		}
	}
	for _, need := range page(t, dossiertest.Passing(t)).Requirements {
		for _, item := range need.Items {
			if item.Statement == "" || len(item.Results) != 1 {
				t.Errorf("%s has no statement or result: %+v", item.Name, item)
			}
			for _, reference := range item.Results[0].Evidence {
				if reference.Name == "" || !strings.Contains(rendered[report.HTMLName], reference.Name) || !strings.Contains(rendered[report.MarkdownName], reference.Name) {
					t.Errorf("%s: the evidence %+v is not named", item.Name, reference)
				}
			}
			if len(item.Results[0].Evidence) == 0 {
				t.Errorf("%s has no evidence", item.Name)
			}
		}
	}
}

func TestTextFromEvidenceIsNeverMarkup(t *testing.T) {
	rendered := render(t, page(t, troubled(t)))
	if html := rendered[report.HTMLName]; strings.Contains(html, "<script>") || !strings.Contains(html, "&lt;script&gt;") {
		t.Error("HTML: a message of a suite became markup, or vanished")
	}
	if markdown := rendered[report.MarkdownName]; strings.Contains(markdown, "<script>") || !strings.Contains(markdown, `\| & ü`) {
		t.Error("Markdown: a message of a suite became markup, or broke its table")
	}
}

func TestTheTimelineShowsEveryScenario(t *testing.T) {
	html := render(t, page(t, troubled(t)))[report.HTMLName]
	if got := strings.Count(html, `<rect class="bar`); got != 7 {
		t.Errorf("%d bars", got)
	}
	if got := strings.Count(html, `<rect class="measured"`); got != 3 {
		t.Errorf("%d measured intervals", got)
	}
	if strings.Count(html, `class="mark witness"`) != 3 || strings.Count(html, `class="mark failed"`) != 1 {
		t.Error("marks are missing")
	}
	if strings.Contains(html, "NaN") || strings.Contains(html, "Inf") {
		t.Error("a coordinate is no number")
	}
}

func TestACellWithoutEvidenceHasAPageToo(t *testing.T) {
	c := dossiertest.Passing(t)
	c.Skip = true
	p := page(t, c)
	rendered := render(t, p)
	if p.Verdict.State != verdict.NotRun || !strings.Contains(rendered[report.HTMLName], "This cell left no ledger") {
		t.Errorf("the verdict is %s", p.Verdict)
	}
}

func TestJUnitTurnsGreenForPassAlone(t *testing.T) {
	type suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Cases []struct {
				Name string `xml:"name,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	unfinished := dossiertest.Passing(t)
	unfinished.Skip = true
	unmeasured := dossiertest.Passing(t)
	unmeasured.Audit = nil
	for name, test := range map[string]struct {
		c    *dossiertest.Case
		want string
	}{
		"passing":    {dossiertest.Passing(t), "17 tests, 0 failures, 0 errors, 0 skipped"},
		"troubled":   {troubled(t), "17 tests, 5 failures, 2 errors, 0 skipped"},
		"unmeasured": {unmeasured, "17 tests, 0 failures, 6 errors, 0 skipped"},
		"not run":    {unfinished, "17 tests, 0 failures, 7 errors, 10 skipped"},
	} {
		var parsed suites
		if err := xml.Unmarshal([]byte(render(t, page(t, test.c))[report.JUnitName]), &parsed); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%d tests, %d failures, %d errors, %d skipped", parsed.Tests, parsed.Failures, parsed.Errors, parsed.Skipped)
		if got != test.want || len(parsed.Suites[0].Cases)+len(parsed.Suites[1].Cases) != parsed.Tests {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestTheInputReadsBack(t *testing.T) {
	p := page(t, dossiertest.Passing(t))
	var again report.Page
	decoder := json.NewDecoder(bytes.NewReader([]byte(render(t, p)[report.InputName])))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&again); err != nil {
		t.Fatal(err)
	}
	if render(t, again)[report.HTMLName] != render(t, p)[report.HTMLName] {
		t.Error("the page rendered from its stored input differs")
	}
}
