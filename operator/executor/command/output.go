package command

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ptah.run/ptah/operator/executor/findings"
	"ptah.run/ptah/operator/plan/report"
)

// write writes a report: JSON as it is, or the text that the command made of it. An output that cannot be written is
// a failure, whatever came before.
func (a *app) write(outcome report.Outcome, document any, problem *report.Problem, detail string, text func(*strings.Builder)) error {
	a.finish(outcome)
	var out bytes.Buffer
	if a.format == "json" {
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(document); err != nil {
			a.exit = ExitFailed
			return fmt.Errorf("encode the report: %w", err)
		}
	} else {
		var b strings.Builder
		if problem == nil {
			text(&b)
		}
		out.WriteString(b.String())
	}
	if _, err := a.Out.Write(out.Bytes()); err != nil {
		a.exit = max(a.exit, ExitFailed)
		return fmt.Errorf("write the report: %w", err)
	}
	if problem == nil {
		return nil
	}
	a.complain(outcome, problem, detail)
	return nil
}

// complain tells a person what went wrong. With JSON the error output may end in the log of a Pod: the caller gives a
// detail without names then.
func (a *app) complain(outcome report.Outcome, problem *report.Problem, detail string) {
	_, _ = fmt.Fprintf(a.Err, "ptah: %s (%s): %s\n", painter(a.ErrColour).paint(red, string(outcome)), problem.Code, problem.Message)
	if len(problem.Categories) > 0 {
		_, _ = fmt.Fprintf(a.Err, "      concerns: %s\n", strings.Join(problem.Categories, ", "))
	}
	if detail = strings.TrimSpace(detail); detail != "" {
		_, _ = fmt.Fprintf(a.Err, "      %s\n", strings.ReplaceAll(detail, "\n", "\n      "))
	}
}

// Colours of the terminal.
const (
	red    = "31"
	yellow = "33"
	green  = "32"
	bold   = "1"
	faint  = "2"
)

// painter colours text where it is true.
type painter bool

func (p painter) paint(colour, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (a *app) paint(colour, text string) string { return painter(a.Colour).paint(colour, text) }

func (p painter) severity(s report.Severity, width int) string {
	text := fmt.Sprintf("%-*s", width, s)
	switch s {
	case report.SeverityDestructive, report.SeverityError:
		return p.paint(red, text)
	case report.SeverityWarning:
		return p.paint(yellow, text)
	}
	return p.paint(green, text)
}

// count is one line of counts, the most frequent first.
func count(words []string) string {
	counts := map[string]int{}
	for _, word := range words {
		counts[word]++
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(counts[y]-counts[x], strings.Compare(x, y))
	})
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%d %s", counts[key], key)
	}
	return strings.Join(keys, ", ")
}

// summary says in a few lines what a plan is made of: what a person wants to know before its statements.
func (p painter) summary(b *strings.Builder, plan *report.Plan) {
	mode := "in one transaction"
	if plan.TransactionMode == report.TransactionNone {
		mode = "each on its own; what ran before a failure stays"
	}
	fmt.Fprintf(b, "%s\n", p.paint(bold, fmt.Sprintf("%d %s, %s", len(plan.Statements), plural(len(plan.Statements), "statement"), mode)))
	var severities, locks, rewrites []string
	for _, s := range plan.Statements {
		severities, locks, rewrites = append(severities, string(s.Severity)), append(locks, s.LockClass), append(rewrites, rewriteWords[s.RewriteRisk])
	}
	fmt.Fprintf(b, "  severity  %s\n  lock      %s\n  rewrite   %s\n\n", count(severities), count(locks), count(rewrites))
}

// statements prints a plan for the person who decides about it.
func (p painter) statements(b *strings.Builder, plan *report.Plan) {
	p.summary(b, plan)
	for i, s := range plan.Statements {
		fmt.Fprintf(b, "%3d  %s  %s\n", i+1, p.severity(s.Severity, len(report.SeverityDestructive)), p.paint(bold, s.Kind))
		notes := []string{"lock: " + s.LockClass, "rewrite: " + rewriteWords[s.RewriteRisk]}
		if s.Reason != "" {
			notes = append([]string{s.Reason}, notes...)
		}
		for _, change := range s.PrivilegeChanges {
			notes = append(notes, "privilege: "+string(change))
		}
		fmt.Fprintf(b, "     %s\n", p.paint(faint, strings.Join(notes, "; ")))
		fmt.Fprintf(b, "     %s;\n\n", strings.ReplaceAll(s.SQL, "\n", "\n     "))
	}
	if plan.Destructive {
		fmt.Fprintf(b, "%s\n", p.paint(red, "This plan is destructive: it takes away rows, columns or objects."))
	}
	if len(plan.PrivilegeChanges) > 0 {
		fmt.Fprintf(b, "%s\n", p.paint(yellow, "This plan changes privileges."))
	}
	if plan.Destructive || len(plan.PrivilegeChanges) > 0 {
		fmt.Fprintln(b)
	}
}

var rewriteWords = map[report.RewriteRisk]string{report.RewriteNone: "none", report.RewriteScan: "reads every row",
	report.RewriteTable: "writes every row or builds an index", report.RewriteMaybe: "possible"}

func (a *app) findings(b *strings.Builder, all []report.Finding) {
	width := 0
	for _, f := range all {
		width = max(width, len(f.Category))
	}
	for _, f := range all {
		fmt.Fprintf(b, "  %s  %4d  %-*s  %s\n", painter(a.Colour).severity(f.Severity, len(report.SeverityDestructive)), f.Count, width, f.Category,
			a.paint(faint, findings.Meaning(f.Category)))
	}
}

// beside shows what was seen and is not part of any difference.
func (a *app) beside(b *strings.Builder, findings []report.Finding) {
	if len(findings) > 0 {
		fmt.Fprintf(b, "Seen, and not planned:\n")
		a.findings(b, findings)
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

func listOf(text string) ([]string, error) {
	if strings.HasPrefix(text, "[") {
		var out []string
		err := json.Unmarshal([]byte(text), &out)
		return out, err
	}
	return csv.NewReader(strings.NewReader(text)).Read()
}
