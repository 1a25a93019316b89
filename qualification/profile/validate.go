package profile

import (
	"errors"
	"fmt"
	"regexp"

	"ptah.run/ptah/qualification/profile/document"
)

var (
	minorPattern    = regexp.MustCompile(`^1\.[1-9][0-9]*$`)
	platformPattern = regexp.MustCompile(`^linux/(amd64|arm64)$`)
)

// validate checks what makes a profile usable at all. The first problem is returned, with the path of its field.
func (p *Profile) validate(name string) error {
	for _, check := range []func() error{p.validateHead, p.validateRevisions, p.validateSupport, p.validateInstallation, p.validateWorkload, p.validateScenarios, p.validateTargets, p.validateExclusions} {
		if err := check(); err != nil {
			var refusal *document.Error
			if errors.As(err, &refusal) {
				refusal.Document = name
			}
			return err
		}
	}
	return nil
}

func refuse(path, format string, arguments ...any) error {
	return &document.Error{Path: path, Problem: fmt.Sprintf(format, arguments...)}
}

func (p *Profile) validateHead() error {
	switch {
	case p.APIVersion != APIVersion:
		return refuse("apiVersion", "it must be %s, not %q", APIVersion, p.APIVersion)
	case p.Kind != Kind:
		return refuse("kind", "it must be %s, not %q", Kind, p.Kind)
	case !idPattern.MatchString(p.Name):
		return refuse("name", "give the profile a name of lower-case words joined by dashes, not %q", p.Name)
	case p.Purpose == "":
		return refuse("purpose", "say whether the profile is for acceptance or development")
	case p.Summary == "":
		return refuse("summary", "say in a sentence what the profile is for")
	case len(p.NotShown) == 0:
		return refuse("notShown", "say at least one thing that a pass under this profile does not show")
	case len(p.Coverage) == 0:
		return refuse("coverage", "name at least one matrix and depth: an empty set is never a pass")
	}
	for i, coverage := range p.Coverage {
		if coverage.Matrix == "" || coverage.Depth == "" {
			return refuse(fmt.Sprintf("coverage[%d]", i), "name a matrix and a depth")
		}
	}
	return nil
}

func (p *Profile) validateRevisions() error {
	if len(p.Revisions) == 0 || p.Revision != p.Revisions[len(p.Revisions)-1].Number {
		return refuse("revision", "it must be the number of the last entry of revisions, add that entry with its reason")
	}
	for i, revision := range p.Revisions {
		path := fmt.Sprintf("revisions[%d]", i)
		switch {
		case revision.Number != i+1:
			return refuse(path+".number", "revisions count up from 1 without gaps, this one must be %d", i+1)
		case revision.Date == "":
			return refuse(path+".date", "give the day of the revision")
		case revision.Reason == "":
			return refuse(path+".reason", "give the reason of the revision in a sentence")
		}
	}
	return nil
}

func (p *Profile) validateSupport() error {
	if len(p.Support.Kubernetes) == 0 || len(p.Support.Databases) == 0 || len(p.Support.Platforms) == 0 {
		return refuse("support", "name at least one Kubernetes minor, one database and one platform")
	}
	for i, minor := range p.Support.Kubernetes {
		if !minorPattern.MatchString(minor) {
			return refuse(fmt.Sprintf("support.kubernetes[%d]", i), "it must be a minor such as \"1.37\", not %q", minor)
		}
	}
	for i, database := range p.Support.Databases {
		if (database.Engine != "PostgreSQL" && database.Engine != "MySQL") || database.Version == "" {
			return refuse(fmt.Sprintf("support.databases[%d]", i), "name the engine PostgreSQL or MySQL and its release line")
		}
	}
	for i, platform := range p.Support.Platforms {
		if !platformPattern.MatchString(platform) {
			return refuse(fmt.Sprintf("support.platforms[%d]", i), "it must be linux/amd64 or linux/arm64, not %q", platform)
		}
	}
	return nil
}

func (p *Profile) validateInstallation() error {
	switch {
	case p.Cluster.ControlPlanes < 1 || p.Cluster.Workers < 0:
		return refuse("cluster", "a cluster has at least one control plane and not fewer than zero workers")
	case p.Installation.Release == "" || p.Installation.Namespace == "" || p.Installation.ManagerIdentity == "":
		return refuse("installation", "name release, namespace and managerIdentity")
	case p.Installation.Replicas < 1:
		return refuse("installation.replicas", "at least one manager runs")
	case p.Installation.LeaderElection.Namespace == "" || p.Installation.LeaderElection.Name == "":
		return refuse("installation.leaderElection", "name the Lease by namespace and name, its requests are counted apart")
	case p.Cluster.ControlPlanes > mostObjects || p.Cluster.Workers > mostObjects || p.Installation.Replicas > mostObjects:
		return refuse("cluster", "nobody runs so many nodes or replicas")
	}
	return p.Installation.validateParts()
}

func (p *Profile) validateScenarios() error {
	if len(p.Scenarios)+len(p.Targets) == 0 {
		return refuse("scenarios", "declare at least one scenario or target: an empty set is never a pass")
	}
	seen := map[string]bool{}
	for i, scenario := range p.Scenarios {
		path := fmt.Sprintf("scenarios[%d]", i)
		switch {
		case !idPattern.MatchString(scenario.Name):
			return refuse(path+".name", "give it a name of lower-case words joined by dashes, not %q", scenario.Name)
		case seen[scenario.Name]:
			return refuse(path+".name", "%s is declared twice", scenario.Name)
		case scenario.Requirement == "":
			return refuse(path+".requirement", "name the requirement it serves, PA-01 to PA-12")
		case scenario.Statement == "":
			return refuse(path+".statement", "say in a sentence what passing it shows")
		case scenario.Cells.Matrix == "":
			return refuse(path+".cells.matrix", "name the matrix whose cells show it")
		}
		seen[scenario.Name] = true
	}
	return nil
}

func (p *Profile) validateTargets() error {
	seen := map[string]bool{}
	for i, target := range p.Targets {
		path := fmt.Sprintf("targets[%d]", i)
		if seen[target.ID] {
			return refuse(path+".id", "%s is declared twice", target.ID)
		}
		seen[target.ID] = true
		if err := target.validate(path); err != nil {
			return err
		}
	}
	return nil
}

func (t Target) validate(path string) error {
	rule, known := metricRules[t.Metric]
	switch {
	case !idPattern.MatchString(t.ID):
		return refuse(path+".id", "give it an id of lower-case words joined by dashes, not %q", t.ID)
	case t.Requirement == "":
		return refuse(path+".requirement", "name the requirement it serves, PA-01 to PA-12")
	case t.Statement == "":
		return refuse(path+".statement", "say in a sentence what it means")
	case !known:
		return refuse(path+".metric", "name a metric")
	case t.Statistic == "":
		return refuse(path+".statistic", "name a statistic")
	case t.Unit != rule.unit:
		return refuse(path+".unit", "%s is counted in %s, not in %q", t.Metric, rule.unit, t.Unit)
	case (t.Bound.AtMost == nil) == (t.Bound.AtLeast == nil):
		return refuse(path+".bound", "give exactly one of atMost and atLeast")
	case !t.Bound.inRange():
		return refuse(path+".bound", "it must lie between 0 and %s", Number(mostBound))
	case t.Population == "":
		return refuse(path+".population", "name the population: what one sample is")
	case t.MinSamples < 1:
		return refuse(path+".minSamples", "at least one sample is needed, an empty set is never a pass")
	case t.Per != "" && (t.Statistic == Max || t.Statistic == Min):
		return refuse(path+".per", "a %s is the same over each and over all, leave it out", t.Statistic)
	case t.Cells.Matrix == "":
		return refuse(path+".cells.matrix", "name the matrix whose cells are measured")
	}
	return t.validateWindow(path, rule)
}

func (b Bound) inRange() bool {
	for _, limit := range []*float64{b.AtMost, b.AtLeast} {
		if limit != nil && (*limit < 0 || *limit > mostBound) {
			return false
		}
	}
	return true
}

func (t Target) validateWindow(path string, rule metricRule) error {
	for _, kind := range rule.windows {
		if kind != t.Window.Over {
			continue
		}
		if (kind == Sliding) != (t.Window.Length > 0) {
			return refuse(path+".window", "a sliding window has a length, and only a sliding window has one")
		}
		return nil
	}
	return refuse(path+".window.over", "%s can be taken over: %v", t.Metric, rule.windows)
}

func (p *Profile) validateExclusions() error {
	seen := map[Requirement]bool{}
	for i, exclusion := range p.Exclusions {
		path := fmt.Sprintf("exclusions[%d]", i)
		switch {
		case exclusion.Requirement == "" || exclusion.Scope == "" || exclusion.Reason == "":
			return refuse(path, "give requirement, scope and reason")
		case !exclusion.Requirement.Excludable():
			return refuse(path+".requirement", "%s may never be excluded: %s", exclusion.Requirement, exclusion.Requirement.Title())
		case seen[exclusion.Requirement]:
			return refuse(path+".requirement", "%s is excluded twice", exclusion.Requirement)
		}
		seen[exclusion.Requirement] = true
	}
	return nil
}
