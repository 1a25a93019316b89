package planview

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ptah.run/ptah/operator/plan/report"
)

// width is what a terminal shows in one line. Statements are not wrapped: their text is what runs.
const width = 80

const labelWidth = 13

// lockMeaning says what a lock keeps others from: those of PostgreSQL by their names, those of MySQL by the clause that
// allows no less.
var lockMeaning = map[string]string{
	"none":                   "waits for nobody and blocks nobody",
	"ACCESS SHARE":           "blocks only what needs the table for itself",
	"ROW SHARE":              "blocks only what needs the table for itself",
	"ROW EXCLUSIVE":          "blocks index builds and other schema changes",
	"SHARE UPDATE EXCLUSIVE": "blocks other schema changes, not reads or writes",
	"SHARE":                  "blocks writes while it runs",
	"SHARE ROW EXCLUSIVE":    "blocks writes while it runs",
	"EXCLUSIVE":              "blocks writes while it runs",
	"ACCESS EXCLUSIVE":       "blocks reads and writes while it runs",
	"LOCK=NONE":              "waits for whoever uses the table; blocks others only at its start and end",
	"LOCK=SHARED":            "blocks writes while it runs",
	"LOCK=EXCLUSIVE":         "blocks reads and writes while it runs",
}

var rewriteMeaning = map[report.RewriteRisk]string{
	report.RewriteNone:  "changes the catalog only",
	report.RewriteScan:  "reads every row",
	report.RewriteTable: "writes every row or builds an index over them",
	report.RewriteMaybe: "may read or write every row",
}

// Text writes the plan for a person who decides.
func (v *View) Text(w io.Writer) error {
	t := &text{}
	v.header(t)
	for i := range v.Document.Statements {
		t.statement(i+1, len(v.Document.Statements), &v.Document.Statements[i])
	}
	v.footer(t)
	_, err := io.WriteString(w, t.out.String())
	return err
}

func (v *View) header(t *text) {
	spec := &v.Plan.Spec
	t.field("schema", v.Schema.Name+" (namespace "+v.Schema.Namespace+")")
	t.field("plan", v.Plan.Name)
	t.field("stored", v.Plan.CreationTimestamp.UTC().Format(time.RFC3339))
	if v.Which == Applied {
		t.field("applied", v.Schema.Status.Applied.CompletedAt.UTC().Format(time.RFC3339))
	}
	t.field("dialect", v.Document.Dialect+" "+v.Document.ServerMajor)
	t.field("statements", fmt.Sprintf("%d, in %s", len(v.Document.Statements), transactionWords(v.Document)))
	t.field("destructive", v.destructiveWords())
	if len(spec.PrivilegeChanges) > 0 {
		words := make([]string, 0, len(spec.PrivilegeChanges))
		for _, change := range spec.PrivilegeChanges {
			words = append(words, string(change))
		}
		t.field("privileges", strings.Join(words, ", "))
	}
	for _, m := range v.Document.ManagedRows {
		what := "all of "
		if m.Scope == "keys" {
			what = fmt.Sprintf("%d of ", len(m.Keys))
		}
		t.field("rows", visible(what+m.Schema+"."+m.Table+" by "+strings.Join(m.Key, ", ")+": "+strings.Join(m.Columns, ", ")))
	}
	if len(v.Document.Exclude) > 0 {
		t.field("excluded", visible(strings.Join(v.Document.Exclude, ", ")))
	}
	t.digest("artifact", string(spec.ArtifactDigest))
	t.digest("content", string(spec.ContentDigest))
	t.digest("fingerprint", string(spec.Fingerprint))
}

func transactionWords(document *report.Plan) string {
	switch document.TransactionMode {
	case report.TransactionNone:
		return "no transaction: a failure leaves what ran before it"
	case report.TransactionFile:
		return "one transaction where the statements allow it"
	}
	return "one transaction"
}

func (v *View) destructiveWords() string {
	var which []string
	for i, statement := range v.Document.Statements {
		if statement.Severity == report.SeverityDestructive {
			which = append(which, fmt.Sprint(i+1))
		}
	}
	switch {
	case len(which) == 1:
		return "YES: statement " + which[0]
	case len(which) > 1:
		return "YES: statements " + strings.Join(which, ", ")
	case v.Plan.Spec.Destructive:
		return "YES, as the operator classifies the whole"
	}
	return "no"
}

func (v *View) footer(t *text) {
	t.out.WriteString("\n")
	if t.escaped {
		t.paragraph("", "Characters that a terminal would hide or obey are written as \\u{...} above; -o sql has them as they are.")
	}
	status := &v.Schema.Status
	switch {
	case v.Which == Applied:
		t.paragraph("", "This plan was applied, and the database was proven to have converged.")
	case v.Waiting():
		t.paragraph("", "Nothing runs before somebody approves. To approve exactly this plan:")
		fmt.Fprintf(&t.out, "\n  kubectl ptah plan %s -n %s -o approval | kubectl create -f -\n", v.Schema.Name, v.Schema.Namespace)
	case status.Plan.Approval != nil:
		t.paragraph("", fmt.Sprintf("Approved by %s at %s.", visible(status.Plan.Approval.Approver.Username), status.Plan.Approval.ApprovedAt.UTC().Format(time.RFC3339)))
	default:
		t.paragraph("", fmt.Sprintf("This plan does not wait for an approval now (phase %s).", phaseWord(v.Schema)))
	}
}

// text is lines of at most width columns, statements excepted.
type text struct {
	out     strings.Builder
	escaped bool
}

func (t *text) field(label, value string) {
	t.paragraph(fmt.Sprintf("%-*s", labelWidth, label), value)
}

// digest stands under its label, because both together are wider than a terminal.
func (t *text) digest(label, value string) { fmt.Fprintf(&t.out, "%s\n  %s\n", label, value) }

// paragraph wraps words; the lines after the first are indented as deep as the label is wide.
func (t *text) paragraph(label, words string) {
	line, indent := label, strings.Repeat(" ", utf8.RuneCountInString(label))
	empty := true
	for _, word := range strings.Fields(words) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			t.out.WriteString(strings.TrimRight(line, " ") + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	t.out.WriteString(strings.TrimRight(line, " ") + "\n")
}

func (t *text) statement(number, total int, s *report.Statement) {
	severity := string(s.Severity)
	if s.Severity == report.SeverityDestructive {
		severity = "DESTRUCTIVE"
	}
	t.out.WriteString("\n" + strings.Repeat("-", width) + "\n")
	head := fmt.Sprintf("%d/%d  %s", number, total, visible(s.Kind))
	gap := max(2, width-utf8.RuneCountInString(head)-len(severity))
	t.out.WriteString(head + strings.Repeat(" ", gap) + severity + "\n")
	const label = 9
	if s.Reason != "" {
		t.paragraph(fmt.Sprintf("  %-*s", label, "because"), visible(s.Reason))
	}
	lock := visible(s.LockClass)
	if meaning, known := lockMeaning[s.LockClass]; known {
		lock += " (" + meaning + ")"
	}
	t.paragraph(fmt.Sprintf("  %-*s", label, "lock"), lock)
	t.paragraph(fmt.Sprintf("  %-*s", label, "rows"), string(s.RewriteRisk)+" ("+rewriteMeaning[s.RewriteRisk]+")")
	if len(s.PrivilegeChanges) > 0 {
		words := make([]string, 0, len(s.PrivilegeChanges))
		for _, change := range s.PrivilegeChanges {
			words = append(words, string(change))
		}
		t.paragraph(fmt.Sprintf("  %-*s", label, "rights"), strings.Join(words, ", "))
	}
	t.out.WriteString("\n")
	shown := visible(s.SQL)
	t.escaped = t.escaped || shown != s.SQL
	for line := range strings.SplitSeq(shown, "\n") {
		t.out.WriteString(strings.TrimRight("    "+line, " ") + "\n")
	}
}

// visible writes what a terminal would obey or hide so that it is seen: a statement must look like what it is.
func visible(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && !unicode.Is(unicode.Cf, r) {
			out.WriteRune(r)
			continue
		}
		fmt.Fprintf(&out, `\u{%x}`, r)
	}
	return out.String()
}
