package report

import (
	"encoding/xml"
	"fmt"
	"time"

	"ptah.run/ptah/qualification/verdict"
)

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

// RequirementsSuite is the suite of JUnit in which each requirement is a test.
const RequirementsSuite = "requirements"

// JUnit renders the page as JUnit XML: one suite per cell, and one over the requirements. A product failure is a
// failure, what proves nothing is an error, so that neither turns green anywhere, and only what was not run with a
// reason is skipped.
func JUnit(page Page) ([]byte, error) {
	root := junitSuites{Name: "ptah " + page.Profile.Name}
	for _, suite := range junitCells(page) {
		root.add(suite)
	}
	needs := junitSuite{Name: RequirementsSuite, Timestamp: stamp(page)}
	for _, need := range page.Requirements {
		if need.Verdict != nil {
			needs.whole(junitCase{Class: RequirementsSuite, Name: string(need.ID), Output: need.Title}, *need.Verdict)
		}
	}
	needs.whole(junitCase{Class: RequirementsSuite, Name: "run", Output: page.Answer}, page.Verdict)
	root.add(needs)
	data, err := xml.MarshalIndent(root, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render JUnit: %w", err)
	}
	return append([]byte(xml.Header), append(data, '\n')...), nil
}

func stamp(page Page) string { return page.Started.UTC().Format("2006-01-02T15:04:05") }

func junitCells(page Page) []junitSuite {
	suites := make([]junitSuite, len(page.Cells))
	index, times := map[string]int{}, map[string]time.Duration{}
	for i, tested := range page.Cells {
		suites[i] = junitSuite{Name: tested.Key, Timestamp: stamp(page)}
		index[tested.Key] = i
		for _, bar := range tested.Timeline {
			times[tested.Key+"\x00"+bar.Scenario] = bar.To.Sub(bar.From)
		}
	}
	for _, need := range page.Requirements {
		for _, item := range need.Items {
			for _, result := range item.Results {
				test := junitCase{Class: result.Cell + "." + item.Kind, Name: item.Name, Output: result.Number}
				if item.Kind == KindScenario {
					test.Time = fmt.Sprintf("%.3f", times[result.Cell+"\x00"+item.Name].Seconds())
				}
				suites[index[result.Cell]].add(test, result.Verdict)
			}
		}
	}
	for i, tested := range page.Cells {
		suites[i].whole(junitCase{Class: tested.Key, Name: "cell"}, tested.Verdict)
	}
	return suites
}

func (r *junitSuites) add(suite junitSuite) {
	r.Tests, r.Failures, r.Errors, r.Skipped = r.Tests+suite.Tests, r.Failures+suite.Failures, r.Errors+suite.Errors, r.Skipped+suite.Skipped
	r.Suites = append(r.Suites, suite)
}

// whole adds the verdict on a cell, a requirement or the run. One that was not run is an error: a gate that reads only
// the colour of this file must not pass it.
func (s *junitSuite) whole(test junitCase, v verdict.Verdict) {
	if v.State == verdict.NotRun {
		s.Tests++
		s.Errors++
		test.Error = &junitProblem{Message: verdictWords(v), Type: v.String()}
		s.Cases = append(s.Cases, test)
		return
	}
	s.add(test, v)
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
