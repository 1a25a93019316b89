package profile

import (
	"fmt"
	"time"

	"ptah.run/ptah/qualification/profile/document"
)

// More than anybody declares. They keep every product of declared numbers in range.
const (
	mostObjects = 1_000_000
	mostRounds  = 1_000
	mostTime    = document.Duration(30 * 24 * time.Hour)
	mostBound   = 1e9
)

func (p *Profile) validateWorkload() error {
	w := p.Workload
	switch {
	case w.Schemas < 0 || w.Migrations < 0 || w.Resources() == 0:
		return refuse("workload", "declare at least one resource")
	case w.Namespaces < 1:
		return refuse("workload.namespaces", "the workload is in at least one namespace")
	case w.Interval == 0:
		return refuse("workload.interval", "declare the interval of the resources")
	case max(w.Interval, w.Duration, w.SampleEvery) > mostTime:
		return refuse("workload", "no interval and no duration is longer than %s", mostTime)
	}
	for _, count := range []struct {
		field string
		value int
	}{{"schemas", w.Schemas}, {"migrations", w.Migrations}, {"namespaces", w.Namespaces}, {"rowsPerDatabase", w.RowsPerDatabase}} {
		if count.value < 0 || count.value > mostObjects {
			return refuse("workload."+count.field, "it must lie between 0 and %d", mostObjects)
		}
	}
	if err := w.validateContents(); err != nil {
		return err
	}
	for _, rounds := range []struct {
		field string
		*Rounds
	}{{"changes", w.Changes}, {"churn", w.Churn}, {"maintenance", w.Maintenance}} {
		if err := rounds.validate("workload." + rounds.field); err != nil {
			return err
		}
	}
	for i, fault := range w.Faults {
		if fault.Class == "" {
			return refuse(fmt.Sprintf("workload.faults[%d].class", i), "name the class of the fault")
		}
	}
	return w.validateVariants()
}

func (w Workload) validateContents() error {
	for i, band := range w.PlanSizes {
		if band.Name == "" || band.FromBytes < 1 || band.ToBytes < band.FromBytes {
			return refuse(fmt.Sprintf("workload.planSizes[%d]", i), "give a name and a range of sizes that is not empty")
		}
	}
	for i, length := range w.Histories {
		if length < 1 || length > mostObjects {
			return refuse(fmt.Sprintf("workload.histories[%d]", i), "a history has at least one version")
		}
	}
	if u := w.Unrelated; u != nil && (u.Namespaces < 1 || u.ConfigMaps < 0 || u.ConfigMapBytes < 0 || u.CompletedJobs < 0) {
		return refuse("workload.unrelated", "unrelated objects are in at least one namespace, and none is counted below zero")
	}
	for i, quota := range w.Quotas {
		if max(quota.Limit, quota.Fixed, quota.PerOperation, quota.PerChange) > mostObjects {
			return refuse(fmt.Sprintf("workload.quotas[%d]", i), "no number in it may be above %d", mostObjects)
		}
		if max(quota.RetainedFor, quota.ChangeHeld) > mostTime {
			return refuse(fmt.Sprintf("workload.quotas[%d]", i), "nothing is held for longer than %s", mostTime)
		}
		if (quota.PerOperation > 0) != (quota.RetainedFor > 0) {
			return refuse(fmt.Sprintf("workload.quotas[%d].retainedFor", i), "say how long an operation holds its objects, and say it only where it holds some")
		}
		if (quota.PerChange > 0) != (quota.ChangeHeld > 0) {
			return refuse(fmt.Sprintf("workload.quotas[%d].changeHeld", i), "say how long a change holds its objects, and say it only where it holds some")
		}
	}
	return nil
}

func (r *Rounds) validate(path string) error {
	switch {
	case r == nil:
		return nil
	case r.Every == 0 || r.Every > mostTime:
		return refuse(path+".every", "declare the time from round to round, at most %s", mostTime)
	case r.Rounds < 1 || r.Rounds > mostRounds:
		return refuse(path+".rounds", "declare at least one round and at most %d", mostRounds)
	case r.Resources < 1 || r.Resources > mostObjects:
		return refuse(path+".resources", "a round has at least one resource")
	case r.CostIntervals < 0 || r.CostIntervals > mostObjects:
		return refuse(path+".costIntervals", "it cannot be negative")
	}
	return nil
}

func (w Workload) validateVariants() error {
	seen := map[string]bool{}
	for i, v := range w.Variants {
		path := fmt.Sprintf("workload.variants[%d]", i)
		switch {
		case !idPattern.MatchString(v.Name) || seen[v.Name]:
			return refuse(path+".name", "give each variant a name of its own of lower-case words, not %q", v.Name)
		case v.Statement == "":
			return refuse(path+".statement", "say in a sentence what it is for")
		case v.Cells.Matrix == "":
			return refuse(path+".cells.matrix", "name the matrix whose cells have it")
		case v.Duration > mostTime:
			return refuse(path+".duration", "it cannot be longer than %s", mostTime)
		case min(v.Schemas, v.Migrations, v.Approvals) < 0 || max(v.Schemas, v.Migrations, v.Approvals) > mostObjects:
			return refuse(path, "schemas, migrations and approvals must lie between 0 and %d", mostObjects)
		}
		if err := v.Changes.validate(path + ".changes"); err != nil {
			return err
		}
		for j, fault := range v.Faults {
			if fault.Class == "" {
				return refuse(fmt.Sprintf("%s.faults[%d].class", path, j), "name the class of the fault")
			}
		}
		seen[v.Name] = true
	}
	return nil
}

func (i Installation) validateParts() error {
	if m := i.Manager; m != nil && (m.CPURequestMillicores < 1 || m.MemoryRequestMebibytes < 1 || m.MemoryLimitMebibytes < m.MemoryRequestMebibytes) {
		return refuse("installation.manager", "give requests above zero, and a memory limit that is not below the request")
	}
	if e := i.Execution; e != nil && min(e.ActiveDeadline, e.ConnectTimeout, e.FailureRetry, e.LockTimeout) == 0 {
		return refuse("installation.execution", "give activeDeadline, connectTimeout, failureRetry and lockTimeout")
	}
	if m := i.Monitoring; m != nil {
		if min(m.ScrapeEvery, m.EvaluateEvery, m.GroupWait) == 0 {
			return refuse("installation.monitoring", "give scrapeEvery, evaluateEvery and groupWait")
		}
		seen := map[string]bool{}
		for at, rule := range m.Rules {
			if rule.Alert == "" || seen[rule.Alert] {
				return refuse(fmt.Sprintf("installation.monitoring.rules[%d].alert", at), "name each alert once")
			}
			seen[rule.Alert] = true
		}
	}
	return nil
}
