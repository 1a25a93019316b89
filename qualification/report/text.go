package report

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"

	"ptah.run/ptah/qualification/verdict"
)

// Markdown renders the page as Markdown.
func Markdown(page Page, inputDigest string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ptah operator %s: qualification\n\n", page.Release.Version)
	fmt.Fprintf(&b, "Profile %s, revision %d (%s), run %s, %s.\n\n", page.Profile.Name, page.Profile.Revision, page.Profile.Purpose, page.Run, moment(page.Started))
	fmt.Fprintf(&b, "**%s.** %s %s\n\n", page.Verdict, page.Notice, page.Answer)
	b.WriteString("## What this does not show\n\n")
	for _, limit := range page.NotShown {
		fmt.Fprintf(&b, "- %s\n", limit)
	}
	for _, exclusion := range page.Exclusions {
		fmt.Fprintf(&b, "- %s is excluded for %s: %s\n", exclusion.Requirement, exclusion.Scope, exclusion.Reason)
	}
	for _, missing := range page.NotAssessed {
		fmt.Fprintf(&b, "- %s (%s): this profile says nothing about it.\n", missing.Requirement, missing.Title)
	}
	b.WriteString("\n## Requirements\n\n")
	for _, need := range page.Needs {
		markdownRequirement(&b, need)
	}
	b.WriteString("## Identity\n\n| What | Digest |\n| --- | --- |\n")
	for _, role := range sortedKeys(page.Release.Images) {
		fmt.Fprintf(&b, "| ptah/%s | `%s` |\n", role, page.Release.Images[role])
	}
	fmt.Fprintf(&b, "| chart %s | `%s` |\n| profile | `%s` |\n| evidence root | `%s` |\n| report input | `%s` |\n| harness | `%s` |\n",
		cell(page.Release.ChartVersion), page.Release.ChartDigest, page.Profile.Digest, page.Root, inputDigest, page.Harness)
	for _, tested := range page.Cells {
		fmt.Fprintf(&b, "| cell %s (%s), inputs | `%s` |\n| cell %s, evidence | `%s` |\n", tested.Key, platform(tested), orNone(tested.InputDigest), tested.Key, orNone(tested.Root))
	}
	return []byte(b.String())
}

func markdownRequirement(b *strings.Builder, need Requirement) {
	fmt.Fprintf(b, "### %s %s: %s\n\n| Cell | What | Shown | Verdict | Evidence |\n| --- | --- | --- | --- | --- |\n", need.Requirement, need.Title, need.Verdict)
	for _, line := range need.Lines {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", cell(line.Cell), cell(line.Name), cell(line.Number), cell(verdictWords(line.Verdict)), cell(shortList(line.Evidence)))
	}
	b.WriteString("\n")
}

func verdictWords(v verdict.Verdict) string {
	words := v.String()
	for _, reason := range v.Reasons {
		words += "; " + string(reason.Code) + ": " + reason.Message
	}
	return words
}

func shortList(digests []string) string {
	var list []string
	for _, digest := range digests {
		list = append(list, "`"+short(digest)+"`")
	}
	return orNone(strings.Join(list, " "))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// cell makes text fit into one cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ", "<", "&lt;").Replace(text)
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr,omitempty"`
	Failure *junitProblem `xml:"failure,omitempty"`
	Error   *junitProblem `xml:"error,omitempty"`
	Skipped *junitProblem `xml:"skipped,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// JUnit renders the page as JUnit XML: one suite per cell. A product failure is a failure, what proves nothing is an
// error, so that neither turns green anywhere, and only what was not run with a reason is skipped.
func JUnit(page Page) ([]byte, error) {
	root := junitSuites{Name: "ptah " + page.Profile.Name}
	for _, tested := range page.Cells {
		suite := junitSuite{Name: tested.Key, Timestamp: page.Started.UTC().Format("2006-01-02T15:04:05")}
		times := map[string]time.Duration{}
		for _, bar := range tested.Timeline {
			times[bar.Scenario] = bar.To.Sub(bar.From)
		}
		for _, s := range tested.Judgement.Scenarios {
			suite.add(junitCase{Class: tested.Key + ".scenario", Name: s.Scenario, Time: fmt.Sprintf("%.3f", times[s.Scenario].Seconds()), Output: scenarioNumber(s)}, s.Verdict)
		}
		for _, t := range tested.Judgement.Targets {
			suite.add(junitCase{Class: tested.Key + ".target", Name: t.Target, Output: targetNumber(t)}, t.Verdict)
		}
		suite.addCell(tested)
		root.Tests, root.Failures, root.Errors, root.Skipped = root.Tests+suite.Tests, root.Failures+suite.Failures, root.Errors+suite.Errors, root.Skipped+suite.Skipped
		root.Suites = append(root.Suites, suite)
	}
	data, err := xml.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render JUnit: %w", err)
	}
	return append([]byte(xml.Header), append(data, '\n')...), nil
}

// addCell adds the verdict on the cell itself. A cell that was not run is an error: a gate that reads only the colour
// of this file must not pass it.
func (s *junitSuite) addCell(tested Cell) {
	whole := tested.Verdict
	if whole.State == verdict.NotRun {
		whole.State = verdict.Inconclusive
	}
	s.add(junitCase{Class: tested.Key, Name: "cell"}, whole)
}

func (s *junitSuite) add(test junitCase, v verdict.Verdict) {
	s.Tests++
	problem := &junitProblem{Message: verdictWords(v), Type: v.String()}
	switch v.State {
	case verdict.Pass:
	case verdict.NotRun:
		s.Skipped++
		test.Skipped = problem
	case verdict.Fail:
		s.Failures++
		test.Failure = problem
	default:
		s.Errors++
		test.Error = problem
	}
	s.Cases = append(s.Cases, test)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
