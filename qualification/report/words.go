package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

func notice(page Page) string {
	switch {
	case page.Profile.Purpose != profile.Acceptance:
		return "This is no acceptance: the profile is for development. A pass under it shows that the whole line works on a small machine, and nothing about production."
	case page.Meets:
		return "The evidence meets this profile, within its exclusions and with the limits listed below. Only the signed record accepts the release."
	default:
		return "The release is not accepted."
	}
}

func answer(page Page) string {
	counts := fmt.Sprintf("%d of %d scenarios and %d of %d numeric targets passed in %d of %d cells, on %d assertions.", page.Counts.ScenariosPassed, page.Counts.Scenarios,
		page.Counts.TargetsPassed, page.Counts.Targets, page.Counts.CellsPassed, page.Counts.Cells, page.Counts.Assertions)
	switch page.Verdict.State {
	case verdict.Pass:
		return "Everything this profile asks for was shown: " + counts
	case verdict.Fail:
		return "Something failed (" + string(page.Verdict.Cause) + "): " + counts
	default:
		return "Not everything this profile asks for was shown (" + page.Verdict.String() + "): " + counts
	}
}

// limits says what the page does not show: what the profile says of itself, and what this run left out. There is always
// at least one.
func limits(page Page, declared []string) []string {
	list := append([]string{}, declared...)
	for _, requirement := range page.Requirements {
		for _, exclusion := range requirement.Exclusions {
			list = append(list, fmt.Sprintf("%s (%s) is excluded for %s: %s", requirement.ID, requirement.Title, exclusion.Scope, exclusion.Reason))
		}
	}
	var silent []string
	for _, requirement := range page.Requirements {
		if requirement.Standing == NotAssessed {
			silent = append(silent, fmt.Sprintf("%s (%s)", requirement.ID, requirement.Title))
		}
	}
	if len(silent) > 0 {
		list = append(list, "This profile says nothing about: "+strings.Join(silent, "; ")+".")
	}
	notRun, emulated := 0, 0
	for _, cell := range page.Cells {
		if cell.Verdict.State == verdict.NotRun {
			notRun++
		}
		if cell.Lab.Platform != "" && !cell.Lab.NativePlatform {
			emulated++
		}
	}
	if notRun > 0 {
		list = append(list, fmt.Sprintf("%d of %d declared cells were not run or left something out. What was not run shows nothing, in neither direction.", notRun, len(page.Cells)))
	}
	if emulated > 0 {
		list = append(list, fmt.Sprintf("%s ran on an emulated platform. Times measured there say nothing about real machines of that platform.", plural(emulated, "cell")))
	}
	if page.Harness.Dirty || page.Harness.Commit == "" {
		list = append(list, "That the program that measured is the one of a commit: it was built from a changed work tree, or nobody knows from what.")
	}
	return append(list, "Anything outside the declared versions, workload and time. A number holds for the cells it was measured in.")
}

func scenarioNumber(s judge.ScenarioVerdict) string {
	if s.Assertions == 0 && s.Witnesses == 0 {
		return "no assertion"
	}
	text := plural(s.Assertions, "assertion")
	if s.Witnesses > 0 {
		text += ", " + plural(s.Witnesses, "witness")
	}
	return text
}

// measured says in words what a target measures and what is declared for it.
func measured(t profile.Target) string {
	over := t.Window.String()
	if t.Window.Over == profile.EachMeasurement {
		over = "each " + t.Population
	}
	text := fmt.Sprintf("%s of %s over %s", statisticWord(t.Statistic), t.Metric, over)
	if t.Per != "" {
		text += fmt.Sprintf(", for each %s apart", strings.ReplaceAll(string(t.Per), "-", " "))
	}
	return fmt.Sprintf("%s: declared %s %s, of at least %s", text, t.Bound, t.Unit, plural(t.MinSamples, "sample"))
}

func statisticWord(s profile.Statistic) string {
	switch s {
	case profile.Max:
		return "largest"
	case profile.Min:
		return "smallest"
	}
	return string(s)
}

func targetNumber(t judge.TargetVerdict) string {
	if t.Value == nil {
		return fmt.Sprintf("not measured (n = %d), declared %s %s", t.N, t.Bound, t.Unit)
	}
	value := number(*t.Value)
	switch {
	case t.Least != nil && t.Most != nil:
		value = fmt.Sprintf("%s (between %s and %s)", value, number(*t.Least), number(*t.Most))
	case t.Least != nil:
		value = fmt.Sprintf("%s (at least %s, and nobody knows the most)", value, number(*t.Least))
	}
	text := fmt.Sprintf("%s %s (n = %d), declared %s", value, t.Unit, t.N, t.Bound)
	if t.Excluded > 0 {
		text += fmt.Sprintf(", %d left out because of a deliberate fault", t.Excluded)
	}
	return text
}

// number writes a value for people: whole numbers as they are, others with the digits that mean something.
func number(value float64) string {
	if value == math.Trunc(value) && math.Abs(value) < 1e15 {
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	if math.Abs(value) >= 1000 {
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'g', 4, 64)
}

func plural(n int, word string) string {
	switch {
	case n == 1:
		return "1 " + word
	case strings.HasSuffix(word, "s"):
		return fmt.Sprintf("%d %ses", n, word)
	default:
		return fmt.Sprintf("%d %ss", n, word)
	}
}

// verdictWords is a verdict with its reasons in one line.
func verdictWords(v verdict.Verdict) string {
	words := v.String()
	for _, reason := range v.Reasons {
		words += "; " + string(reason.Code) + ": " + reason.Message
	}
	return words
}

// short keeps the head of a digest: enough to tell digests apart while reading.
func short(digest string) string {
	hex := strings.TrimPrefix(digest, "sha256:")
	if len(hex) > 12 {
		return hex[:12]
	}
	return hex
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
