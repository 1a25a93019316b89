package profile

import (
	"fmt"
	"sort"
	"strings"
)

// Table writes the profile for people, in Markdown: what is declared, in prose and tables. It is generated, so that
// no number stands in two places.
func Table(p *Profile) []byte {
	w := &page{}
	w.line("<!-- Generated from profiles/%s.yaml by `ptah-qualify profile table`. Do not edit. -->", p.Name)
	w.line("")
	w.line("# The profile %s", p.Name)
	w.line("")
	w.line("%s", p.Summary)
	w.line("")
	w.line("Revision %d, for %s. Its digest is `%s`.", p.Revision, p.Purpose, p.Digest())
	if p.Purpose == Development {
		w.line("Nothing judged under it is ever an acceptance.")
	}
	w.support(p)
	w.installation(p)
	w.workload(p)
	w.requirements(p)
	w.sources(p)
	w.list("What a pass does not show", p.NotShown)
	w.exclusions(p)
	w.revisions(p)
	return []byte(w.String())
}

type page struct{ strings.Builder }

func (w *page) line(format string, arguments ...any) {
	fmt.Fprintf(&w.Builder, format, arguments...)
	w.WriteByte('\n')
}

func (w *page) heading(title string) { w.line("\n## %s\n", title) }

func (w *page) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	w.heading(title)
	for _, item := range items {
		w.line("- %s", item)
	}
}

// row writes one row; a bar in a cell would end it.
func (w *page) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(strings.Join(strings.Fields(cell), " "), "|", "\\|")
	}
	w.line("| %s |", strings.Join(cells, " | "))
}

func (w *page) head(cells ...string) {
	w.row(cells...)
	w.line("|%s", strings.Repeat(" --- |", len(cells)))
}

func (w *page) support(p *Profile) {
	w.heading("Versions")
	var databases []string
	for _, d := range p.Support.Databases {
		databases = append(databases, d.Engine+" "+d.Version)
	}
	w.line("- Kubernetes %s", joined(p.Support.Kubernetes))
	w.line("- %s", joined(databases))
	w.line("- %s", joined(p.Support.Platforms))
	w.line("")
	w.line("Every cell of these must have run and passed:")
	w.line("")
	w.head("Matrix", "Depth")
	for _, c := range p.Coverage {
		w.row(c.Matrix, c.Depth)
	}
}

func (w *page) installation(p *Profile) {
	i := p.Installation
	w.heading("Cluster and installation")
	w.line("- %s and %s", counted(p.Cluster.ControlPlanes, "control plane"), counted(p.Cluster.Workers, "worker"))
	if p.Cluster.HostCPUs > 0 {
		w.line("- A machine of at least %s and %d GiB of memory", counted(p.Cluster.HostCPUs, "processor"), p.Cluster.HostMemoryGibibytes)
	}
	w.line("- Release %s in namespace %s, %s, whose identity is `%s`", i.Release, i.Namespace, counted(i.Replicas, "manager"), i.ManagerIdentity)
	if m := i.Manager; m != nil {
		w.line("- Each manager asks for %dm CPU and %d MiB, and is limited to %d MiB", m.CPURequestMillicores, m.MemoryRequestMebibytes, m.MemoryLimitMebibytes)
	}
	if i.PodSecurity != "" {
		w.line("- Pod Security at the level %s", i.PodSecurity)
	}
	if e := i.Execution; e != nil {
		w.line("- An operation ends after %s, a connection is given up after %s, a lock after %s; a failure is retried after %s", e.ActiveDeadline, e.ConnectTimeout, e.LockTimeout, e.FailureRetry)
	}
	for _, condition := range i.Conditions {
		w.line("- %s", condition)
	}
	if m := i.Monitoring; m != nil {
		w.line("\nMetrics are scraped every %s and rules evaluated every %s; notifications wait %s for others of their group.\n", m.ScrapeEvery, m.EvaluateEvery, m.GroupWait)
		w.head("Alert", "Fires after", "Looks back")
		for _, rule := range m.Rules {
			w.row(rule.Alert, orWords(rule.After, "at once"), orWords(rule.Window, "no"))
		}
	}
}

func (w *page) workload(p *Profile) {
	l := p.Workload
	w.heading("Workload")
	w.line("- %s and %s in %s, each refreshed every %s", counted(l.Schemas, "schema"), counted(l.Migrations, "migration"), counted(l.Namespaces, "namespace"), l.Interval)
	if l.Duration > 0 {
		w.line("- Measured for %s", l.Duration)
	}
	if l.SampleEvery > 0 {
		w.line("- Sampled every %s", l.SampleEvery)
	}
	if l.RowsPerDatabase > 0 {
		w.line("- %d rows in each database", l.RowsPerDatabase)
	}
	if l.ArtifactBytes > 0 {
		w.line("- Artifacts of up to %d bytes", l.ArtifactBytes)
	}
	for _, band := range l.PlanSizes {
		w.line("- Plans of %s size: %d to %d bytes", band.Name, band.FromBytes, band.ToBytes)
	}
	if len(l.Histories) > 0 {
		w.line("- Migration histories of %s versions", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(l.Histories)), ", "), "[]"))
	}
	if u := l.Unrelated; u != nil {
		w.line("- Of others, in %s: %d ConfigMaps of %d bytes and %d completed Jobs", counted(u.Namespaces, "namespace"), u.ConfigMaps, u.ConfigMapBytes, u.CompletedJobs)
	}
	w.rounds(l)
	for _, fault := range l.Faults {
		w.line("- Fault %s%s", fault.Class, fault.timing())
	}
	for _, v := range l.Variants {
		w.line("- In %s (%s): %s%s", v.Cells, v.Name, lowered(v.Statement), v.measured(p))
	}
	w.quotas(p)
}

func (w *page) rounds(l Workload) {
	for _, part := range []struct {
		*Rounds
		what string
	}{{l.Changes, "change"}, {l.Churn, "are deleted and made again"}, {l.Maintenance, "are suspended while stored plans are pruned"}} {
		if r := part.Rounds; r != nil {
			w.line("- Every %s, %d times, %s %s; a round takes up to %s from each of them", r.Every, r.Rounds, counted(r.Resources, "resource"), part.what, counted(r.CostIntervals, "interval"))
		}
	}
}

func (f Fault) timing() string {
	var text string
	if f.Delay > 0 {
		text += fmt.Sprintf(", %s for each new session", f.Delay)
	}
	if f.Hold > 0 {
		text += fmt.Sprintf(", for %s", f.Hold)
	}
	return text
}

func (v Variant) measured(p *Profile) string {
	var text string
	if v.Schemas+v.Migrations > 0 {
		text += fmt.Sprintf(" %s.", counted(p.Workload.as(v).Resources(), "resource"))
	}
	if v.Duration > 0 {
		text += fmt.Sprintf(" Measured for %s.", v.Duration)
	}
	return text
}

func (w *page) quotas(p *Profile) {
	if len(p.Workload.Quotas) == 0 {
		return
	}
	w.line("\nEach workload namespace has these quotas, and holds at the most:\n")
	w.head("Quota", "Limit", "Held")
	whole := setting{Workload: p.Workload}
	for _, quota := range p.Workload.Quotas {
		held, _ := whole.held(quota)
		w.row(quota.Resource, fmt.Sprint(quota.Limit), fmt.Sprint(held))
	}
}

func (w *page) requirements(p *Profile) {
	for _, requirement := range Requirements() {
		var targets []Target
		var scenarios []Scenario
		for _, t := range p.Targets {
			if t.Requirement == requirement {
				targets = append(targets, t)
			}
		}
		for _, s := range p.Scenarios {
			if s.Requirement == requirement {
				scenarios = append(scenarios, s)
			}
		}
		w.heading(fmt.Sprintf("%s %s", requirement, requirement.Title()))
		if len(targets)+len(scenarios) == 0 {
			w.line("This profile says nothing about it.")
		}
		w.targets(targets)
		if len(targets) > 0 && len(scenarios) > 0 {
			w.line("")
		}
		w.scenarios(scenarios)
	}
}

func (w *page) targets(list []Target) {
	if len(list) == 0 {
		return
	}
	w.head("Target", "Bound", "What must hold", "Number", "Samples", "Cells", "Left out")
	for _, t := range list {
		w.row(t.ID, fmt.Sprintf("%s %s", t.Bound, t.Unit), t.Statement, t.Number(), fmt.Sprint(max(t.MinSamples, t.Statistic.LeastSamples())), t.Cells.String(), classes(t.Exclude))
	}
}

// Number says in words which number the target bounds.
func (t Target) Number() string {
	text := fmt.Sprintf("%s of %s", t.Statistic, t.Metric)
	switch t.Window.Over {
	case EachMeasurement:
		text += fmt.Sprintf(" of each %s", t.Population)
	case Sliding:
		text += fmt.Sprintf(" in %s, %s", t.Window, t.Population)
	default:
		text += fmt.Sprintf(" over %s, %s", t.Window, t.Population)
	}
	if t.Per != "" {
		text += fmt.Sprintf(", for each %s", t.Per)
	}
	return text
}

func (w *page) scenarios(list []Scenario) {
	if len(list) == 0 {
		return
	}
	w.head("Scenario", "What passing it shows", "Fault", "Cells")
	for _, s := range list {
		w.row(s.Name, s.Statement, string(s.Fault), s.Cells.String())
	}
}

// String writes the selection for people, such as "capacity, workload soak".
func (s Selection) String() string {
	words := []string{s.Matrix}
	for _, axis := range sortedKeys(s.Where) {
		words = append(words, axis+" "+s.Where[axis])
	}
	return joined(words)
}

func (w *page) exclusions(p *Profile) {
	var lines []string
	for _, e := range p.Exclusions {
		lines = append(lines, fmt.Sprintf("%s, %s: %s", e.Requirement, e.Scope, e.Reason))
	}
	w.list("What is excluded", lines)
}

func (w *page) revisions(p *Profile) {
	var lines []string
	for _, r := range p.Revisions {
		line := fmt.Sprintf("%d (%s): %s", r.Number, r.Date, r.Reason)
		if len(r.Changes) > 0 {
			line += " It changes " + joined(r.Changes) + "."
		}
		lines = append(lines, line)
	}
	w.list("Revisions", lines)
}

// sources says for every metric that is used where its numbers come from.
func (w *page) sources(p *Profile) {
	used := map[Metric]bool{}
	for _, t := range p.Targets {
		used[t.Metric] = true
	}
	w.heading("Where the numbers come from")
	w.head("Metric", "Unit", "Computed from")
	for _, metric := range sortedKeys(used) {
		w.row(string(metric), string(metric.Unit()), string(metric.Source()))
	}
}

func orWords(d duration, none string) string {
	if d == 0 {
		return none
	}
	return d.String()
}

func classes(list []FaultClass) string {
	words := make([]string, len(list))
	for i, class := range list {
		words[i] = string(class)
	}
	sort.Strings(words)
	return joined(words)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// lowered begins a sentence that follows a colon.
func lowered(sentence string) string {
	if sentence == "" {
		return ""
	}
	return strings.ToLower(sentence[:1]) + sentence[1:]
}
