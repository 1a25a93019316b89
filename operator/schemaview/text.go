package schemaview

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ptah.run/ptah/operator/planview/page"
)

// Text writes the view for a person: first what is to do, then what it rests on.
func (v *View) Text(w io.Writer) error {
	p := page.New(w)
	v.head(p)
	v.evidence(p)
	v.work(p)
	v.conditions(p)
	return p.Flush()
}

func (v *View) head(p *page.Page) {
	p.Field("schema", v.Name+" (namespace "+v.Namespace+")")
	phase := v.Phase
	if phase == "" {
		phase = "none yet"
	}
	if v.Phase != "" && v.ObservedGeneration != v.Generation {
		phase += fmt.Sprintf(" (of generation %d; the spec is at %d)", v.ObservedGeneration, v.Generation)
	}
	p.Field("phase", phase)
	if v.Reason != "" {
		p.Field("because", v.Reason+": "+page.Visible(v.Message))
	}
	p.Field("next", v.Next.Action)
	if v.Next.Command != "" {
		p.Line("\n  %s\n", v.Next.Command)
	}
}

func (v *View) evidence(p *page.Page) {
	a := &v.Artifact
	p.Field("artifact", page.Visible(a.Reference))
	if a.Digest != "" {
		p.Line("  %s", page.Visible(a.Digest))
		words := "resolved " + moment(a.ResolvedAt) + ", not verified"
		if a.Verified {
			words = "resolved and verified " + moment(a.VerifiedAt)
		}
		p.Field("", words)
	}
	t := &v.Target
	where := "coordination key " + t.CoordinationKey
	if t.Realm != "" {
		where = "PtahRealm " + t.Realm
	}
	p.Field("target", fmt.Sprintf("%s, %s, URL in key %s of Secret %s", page.Visible(t.Engine), where, page.Visible(t.SecretKey), page.Visible(t.Secret)))
	if t.ObservedAt != nil {
		p.Field("", fmt.Sprintf("version %s, read %s", page.Visible(t.ServerVersion), moment(t.ObservedAt)))
	}
	v.drift(p)
}

func (v *View) drift(p *page.Page) {
	d := v.Drift
	switch {
	case d == nil || d.Status == "Unknown":
		p.Field("drift", "not known")
	case d.Count == 0 && d.Status == "True":
		p.Field("drift", "yes, in no category that is counted")
	case d.Count == 0:
		p.Field("drift", "none")
	default:
		p.Field("drift", fmt.Sprintf("%d differences, at most %s", d.Count, d.HighestSeverity))
		for _, c := range d.Categories {
			p.Line("  %5d  %-40s %s", c.Count, page.Visible(c.Category), c.Severity)
		}
		if d.Truncated {
			p.Line("         and more categories")
		}
	}
}

func (v *View) work(p *page.Page) {
	if plan := v.Plan; plan != nil {
		words := []string{fmt.Sprintf("%s, %d statements, %d bytes, made %s", plan.Name, plan.Statements, plan.Size, moment(&plan.CreatedAt))}
		if plan.Destructive {
			words = append(words, "DESTRUCTIVE")
		}
		if len(plan.PrivilegeChanges) > 0 {
			words = append(words, "changes privileges ("+strings.Join(plan.PrivilegeChanges, ", ")+")")
		}
		if plan.Attempted {
			words = append(words, "ran before without leading to convergence")
		}
		p.Field("plan", strings.Join(words, "; "))
		approval := "none"
		if plan.Approval != nil {
			approval = fmt.Sprintf("%s by %s, %s", plan.Approval.Name, page.Visible(plan.Approval.Approver), moment(&plan.Approval.ApprovedAt))
		}
		p.Field("approval", approval)
		p.Digest("fingerprint", plan.Fingerprint)
	} else {
		p.Field("plan", "none")
	}
	if v.Applied != nil {
		p.Field("applied", fmt.Sprintf("%s, proven %s", v.Applied.Plan, moment(&v.Applied.CompletedAt)))
	}
	if o := v.Operation; o != nil {
		words := o.Type
		if o.Proof {
			words += " that proves an Apply"
		}
		words += ", Job " + o.Job + ", claimed " + moment(&o.StartedAt)
		if !o.Dispatched {
			words += ", not dispatched"
		}
		p.Field("running", words)
	}
	if v.BusySince != nil {
		p.Field("waits", "for another resource that works on the same database, since "+moment(v.BusySince))
	}
	if o := v.Proof; o != nil {
		words := fmt.Sprintf("owed for %s: %s, Job %s, %d Pods seen", o.Plan, o.Outcome, o.Job, o.Pods)
		if o.Refusal != "" {
			words += ", refused (" + page.Visible(o.Refusal) + ")"
		}
		if o.NotBefore != nil {
			words += ", not before " + moment(o.NotBefore)
		}
		p.Field("proof", words)
	}
	schedule := "every " + v.Schedule.Interval + ", last success " + moment(v.Schedule.LastSuccess) + ", next " + moment(v.Schedule.Next)
	if v.Schedule.FailedAttempts > 0 {
		schedule += fmt.Sprintf("; %d attempts failed in a row", v.Schedule.FailedAttempts)
	}
	p.Field("refresh", schedule)
}

func (v *View) conditions(p *page.Page) {
	p.Line("\n%-21s%-9s%-29s%s", "CONDITION", "STATUS", "REASON", "SINCE")
	for _, c := range v.Conditions {
		since := moment(&c.Since)
		if !c.Current {
			since += " (of an older generation)"
		}
		p.Line("%-21s%-9s%-29s%s", c.Type, c.Status, c.Reason, since)
	}
	for _, c := range v.Conditions {
		// What Ready says stands above; of the rest only what is wrong needs words.
		if c.Type == "ReconciliationFailed" && c.Status == "True" && c.Message != v.Message {
			p.Paragraph("", "")
			p.Paragraph("", "Failure: "+page.Visible(c.Message))
		}
	}
}

func moment(at *metav1.Time) string {
	if at == nil || at.IsZero() {
		return "never"
	}
	return at.UTC().Format(time.RFC3339)
}
