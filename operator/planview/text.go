package planview

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/planview/page"
)

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
	t := &text{Page: page.New(w)}
	v.header(t)
	number := 0
	err := v.each(func(s *report.Statement) error {
		number++
		t.statement(number, v.count, s)
		return nil
	})
	if err != nil {
		return err
	}
	v.footer(t)
	return t.Flush()
}

func (v *View) header(t *text) {
	spec := &v.Plan.Spec
	t.Field("schema", v.Schema.Name+" (namespace "+v.Schema.Namespace+")")
	t.Field("plan", v.Plan.Name)
	t.Field("stored", v.Plan.CreationTimestamp.UTC().Format(time.RFC3339))
	if v.Which == Applied {
		t.Field("applied", v.Schema.Status.Applied.CompletedAt.UTC().Format(time.RFC3339))
	}
	t.Field("dialect", v.Header.Dialect+" "+v.Header.ServerMajor)
	t.Field("statements", fmt.Sprintf("%d, in %s", v.count, transactionWords(v.Header)))
	t.Field("destructive", v.destructiveWords())
	if len(spec.PrivilegeChanges) > 0 {
		words := make([]string, 0, len(spec.PrivilegeChanges))
		for _, change := range spec.PrivilegeChanges {
			words = append(words, string(change))
		}
		t.Field("privileges", strings.Join(words, ", "))
	}
	for _, m := range v.Header.ManagedRows {
		what := "all of "
		if m.Scope == "keys" {
			what = fmt.Sprintf("%d of ", len(m.Keys))
		}
		t.Field("rows", page.Visible(what+m.Schema+"."+m.Table+" by "+strings.Join(m.Key, ", ")+": "+strings.Join(m.Columns, ", ")))
	}
	if len(v.Header.Exclude) > 0 {
		t.Field("excluded", page.Visible(strings.Join(v.Header.Exclude, ", ")))
	}
	t.Digest("artifact", string(spec.ArtifactDigest))
	t.Digest("content", string(spec.ContentDigest))
	t.Digest("fingerprint", string(spec.Fingerprint))
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
	switch {
	case len(v.destructive) == 1:
		return "YES: statement " + strconv.Itoa(v.destructive[0])
	case len(v.destructive) > 1:
		which := make([]string, len(v.destructive))
		for i, number := range v.destructive {
			which[i] = strconv.Itoa(number)
		}
		return "YES: statements " + strings.Join(which, ", ")
	case v.Plan.Spec.Destructive:
		return "YES, as the operator classifies the whole"
	}
	return "no"
}

func (v *View) footer(t *text) {
	t.Raw("\n")
	if t.escaped {
		t.Paragraph("", "Characters that a terminal would hide or obey are written as \\u{...} above; -o sql has them as they are.")
	}
	status := &v.Schema.Status
	switch {
	case v.Which == Applied:
		t.Paragraph("", "This plan was applied, and the database was proven to have converged.")
	case v.Waiting():
		t.Paragraph("", "Nothing runs before somebody approves. To approve exactly this plan:")
		t.Line("\n  kubectl ptah plan %s -n %s -o approval | kubectl create -f -", v.Schema.Name, v.Schema.Namespace)
	case status.Plan.Approval != nil:
		t.Paragraph("", fmt.Sprintf("Approved by %s at %s.", page.Visible(status.Plan.Approval.Approver.Username), status.Plan.Approval.ApprovedAt.UTC().Format(time.RFC3339)))
	default:
		t.Paragraph("", fmt.Sprintf("This plan does not wait for an approval now (phase %s).", phaseWord(v.Schema)))
	}
}

// text is a page that remembers whether a statement looks other than it is.
type text struct {
	*page.Page
	escaped bool
}

// rowsWords says what becomes of stored rows. A change of rows rewrites no table, and is not about the catalog.
func rowsWords(s *report.Statement) string {
	if s.RewriteRisk == report.RewriteNone && (s.Kind == "INSERT" || s.Kind == "UPDATE" || s.Kind == "DELETE") {
		return "those that it names (the table is not rewritten)"
	}
	return string(s.RewriteRisk) + " (" + rewriteMeaning[s.RewriteRisk] + ")"
}

func (t *text) statement(number, total int, s *report.Statement) {
	severity := string(s.Severity)
	if s.Severity == report.SeverityDestructive {
		severity = "DESTRUCTIVE"
	}
	t.Raw("\n" + strings.Repeat("-", page.Width) + "\n")
	head := fmt.Sprintf("%d/%d  %s", number, total, page.Visible(s.Kind))
	gap := max(2, page.Width-utf8.RuneCountInString(head)-len(severity))
	t.Raw(head + strings.Repeat(" ", gap) + severity + "\n")
	const label = 9
	if s.Reason != "" {
		t.Paragraph(fmt.Sprintf("  %-*s", label, "because"), page.Visible(s.Reason))
	}
	lock := page.Visible(s.LockClass)
	if meaning, known := lockMeaning[s.LockClass]; known {
		lock += " (" + meaning + ")"
	}
	t.Paragraph(fmt.Sprintf("  %-*s", label, "lock"), lock)
	t.Paragraph(fmt.Sprintf("  %-*s", label, "rows"), rowsWords(s))
	if len(s.PrivilegeChanges) > 0 {
		words := make([]string, 0, len(s.PrivilegeChanges))
		for _, change := range s.PrivilegeChanges {
			words = append(words, string(change))
		}
		t.Paragraph(fmt.Sprintf("  %-*s", label, "rights"), strings.Join(words, ", "))
	}
	t.Raw("\n")
	shown := page.Visible(s.SQL)
	t.escaped = t.escaped || shown != s.SQL
	for line := range strings.SplitSeq(shown, "\n") {
		t.Raw(strings.TrimRight("    "+line, " ") + "\n")
	}
}
