package profile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
)

func profiles(t *testing.T) map[string]*profile.Profile {
	t.Helper()
	all := map[string]*profile.Profile{}
	for path, data := range files(t, "../../profiles/*.yaml") {
		p, err := profile.Decode(path, data)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".yaml")] = p
	}
	return all
}

func matrices(t *testing.T) map[string]*matrix.Matrix {
	t.Helper()
	all := map[string]*matrix.Matrix{}
	for path, data := range files(t, "../../matrices/*.yaml") {
		m, err := matrix.Decode(path, data)
		if err != nil {
			t.Fatal(err)
		}
		all[m.Name] = m
	}
	return all
}

func files(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		if all[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// misfits is everything in which a profile does not fit the matrices that it covers.
func misfits(p *profile.Profile, matrices map[string]*matrix.Matrix) []string {
	var found []string
	var cells []matrix.Cell
	for _, coverage := range p.Coverage {
		m, known := matrices[coverage.Matrix]
		if !known {
			found = append(found, "there is no matrix "+coverage.Matrix)
			continue
		}
		selected, err := m.Select(coverage.Depth)
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		cells = append(cells, selected...)
	}
	shown := func(selection profile.Selection) bool {
		return slices.ContainsFunc(cells, func(cell matrix.Cell) bool { return selection.Matches(cell.Matrix, cell.Axes) })
	}
	for _, scenario := range p.Scenarios {
		if !shown(scenario.Cells) {
			found = append(found, "no covered cell shows the scenario "+scenario.Name)
		}
	}
	for _, target := range p.Targets {
		if !shown(target.Cells) {
			found = append(found, "no covered cell measures the target "+target.ID)
		}
	}
	for _, variant := range p.Workload.Variants {
		if !shown(variant.Cells) {
			found = append(found, "no covered cell has the workload "+variant.Name)
		}
	}
	for _, cell := range cells {
		if len(p.ScenariosOf(cell.Matrix, cell.Axes)) == 0 {
			found = append(found, "no scenario is demanded of the cell "+cell.Key)
		}
		if minor, named := cell.Attributes["kubernetes.minor"]; named && !slices.Contains(p.Support.Kubernetes, minor) {
			found = append(found, "the cell "+cell.Key+" runs on a Kubernetes that the profile does not declare")
		}
	}
	return found
}

func TestEveryProfileFitsTheMatricesThatItCovers(t *testing.T) {
	all := matrices(t)
	for name, p := range profiles(t) {
		for _, misfit := range misfits(p, all) {
			t.Errorf("%s: %s", name, misfit)
		}
	}
}

// What the test above would not see is worth nothing: each kind of misfit is seen once.
func TestAMisfitIsSeen(t *testing.T) {
	all := matrices(t)
	cases := map[string]struct {
		change func(*profile.Profile)
		want   string
	}{
		"a matrix that is not there":         {func(p *profile.Profile) { p.Coverage[0].Matrix = "weather" }, "there is no matrix weather"},
		"a depth that is not there":          {func(p *profile.Profile) { p.Coverage[0].Depth = "deep" }, `no depth "deep"`},
		"a suite that is not there":          {func(p *profile.Profile) { p.Scenarios[0].Cells.Where = map[string]string{"suite": "none"} }, "no covered cell shows the scenario converge-from-empty-after-approval"},
		"an axis that is not there":          {func(p *profile.Profile) { p.Targets[0].Cells.Where = map[string]string{"colour": "red"} }, "no covered cell measures the target"},
		"a variant of no cell":               {func(p *profile.Profile) { p.Workload.Variants[1].Cells.Where["workload"] = "none" }, "no covered cell has the workload backlog"},
		"a cell that nothing is demanded of": {func(p *profile.Profile) { p.Scenarios = nil }, "no scenario is demanded of the cell"},
		"a minor that is not declared":       {func(p *profile.Profile) { p.Support.Kubernetes = []string{"1.30"} }, "runs on a Kubernetes that the profile does not declare"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			p := profiles(t)["production"]
			test.change(p)
			if found := misfits(p, all); !slices.ContainsFunc(found, func(misfit string) bool { return strings.Contains(misfit, test.want) }) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

// number is what the production profile must declare. The list is kept apart from the profile on purpose: a target
// that is dropped or weakened fails here, and not only in a review of the profile.
type number struct {
	metric     profile.Metric
	statistic  profile.Statistic
	population string
	matrix     string
	where      string // a value that the selection must have, empty for any
	atMost     float64
	atLeast    float64
}

var declared = map[string]number{
	"cold start to convergence, 5 min":             {profile.MeasuredDuration, profile.Max, "cold start", "capacity", "soak", 300, 0},
	"changed batch to convergence, 5 min":          {profile.MeasuredDuration, profile.Max, "change batch", "capacity", "soak", 300, 0},
	"approved backlog to convergence, 5 min":       {profile.MeasuredDuration, profile.Max, "approval backlog", "capacity", "backlog", 300, 0},
	"oldest observation, 5 min":                    {profile.ObservationAge, profile.Max, "every resource", "capacity", "soak", 300, 0},
	"overdue, 60 s":                                {profile.Overdue, profile.Max, "every resource", "capacity", "soak", 60, 0},
	"p95 of operations, 60 s":                      {profile.OperationLatency, profile.P95, "operation", "capacity", "soak", 60, 0},
	"p95 of queues, 30 s":                          {profile.QueueDelay, profile.P95, "queued item", "capacity", "soak", 30, 0},
	"no standstill of 5 min":                       {profile.TimeWithoutProgress, profile.Max, "every resource", "capacity", "soak", 300, 0},
	"manager memory, 192 MiB":                      {profile.ManagerMemory, profile.Max, "manager process", "capacity", "soak", 192, 0},
	"manager memory growth, 10 percent":            {profile.ManagerMemoryGrowth, profile.Max, "manager process", "capacity", "soak", 10, 0},
	"no kill for memory":                           {profile.ManagerOutOfMemory, profile.Sum, "manager process", "capacity", "", 0, 0},
	"no unplanned restart":                         {profile.ManagerRestarts, profile.Sum, "manager process", "capacity", "", 0, 0},
	"manager CPU, one core":                        {profile.ManagerCPU, profile.Max, "scenario", "capacity", "soak", 1, 0},
	"no 429 in the soak":                           {profile.RateLimitedResponses, profile.Sum, "responses to the manager", "capacity", "soak", 0, 0},
	"no 429 in the backlog":                        {profile.RateLimitedResponses, profile.Sum, "responses to the manager", "capacity", "backlog", 0, 0},
	"no rejection by priority and fairness":        {profile.PriorityRejections, profile.Sum, "API server", "capacity", "soak", 0, 0},
	"throttling, 10 s in any 10 min":               {profile.ClientThrottling, profile.Max, "manager process", "capacity", "soak", 10, 0},
	"600 requests in any 60 s of the soak":         {profile.ManagerRequests, profile.Max, "every window", "capacity", "soak", 600, 0},
	"600 requests in any 60 s of the backlog":      {profile.ManagerRequests, profile.Max, "every window", "capacity", "backlog", 600, 0},
	"25 requests per refresh":                      {profile.ManagerWorkRequests, profile.Max, "refresh", "functional", "data-plane", 25, 0},
	"40 requests per Apply":                        {profile.ManagerWorkRequests, profile.Max, "apply", "functional", "data-plane", 40, 0},
	"p95 of admission, 1 s":                        {profile.AdmissionLatency, profile.P95, "admission request", "capacity", "soak", 1, 0},
	"20 running operations":                        {profile.RunningOperations, profile.Max, "reading", "capacity", "soak", 20, 0},
	"20 pending operations":                        {profile.PendingOperations, profile.Max, "reading", "capacity", "soak", 20, 0},
	"stored plans, 128 MiB":                        {profile.RetainedPlans, profile.Max, "checkpoint", "capacity", "soak", 128, 0},
	"no growth of stored plans":                    {profile.RetainedPlansGrowth, profile.Max, "checkpoint", "capacity", "soak", 0, 0},
	"every pin resolves":                           {profile.BrokenPins, profile.Sum, "checkpoint", "capacity", "soak", 0, 0},
	"registry recovery, 3 min":                     {profile.MeasuredDuration, profile.Max, "registry recovery", "capacity", "soak", 180, 0},
	"all managers replaced, 3 min":                 {profile.MeasuredDuration, profile.Max, "managers replaced", "capacity", "soak", 180, 0},
	"approval admitted, 90 s":                      {profile.MeasuredDuration, profile.Max, "approval admitted", "capacity", "soak", 90, 0},
	"its Apply dispatched, 3 min":                  {profile.MeasuredDuration, profile.Max, "apply dispatched", "capacity", "soak", 180, 0},
	"hung result canceled, 75 s":                   {profile.MeasuredDuration, profile.Max, "hung result canceled", "functional", "schema-faults", 75, 0},
	"unrelated work meanwhile, 180 s":              {profile.MeasuredDuration, profile.Max, "unrelated convergence", "functional", "schema-faults", 180, 0},
	"overload recovery, 5 min":                     {profile.MeasuredDuration, profile.Max, "overload recovery", "capacity", "overload", 300, 0},
	"30 cycles of unchanged resources":             {profile.ReadOnlyCycles, profile.Min, "unchanged resources", "capacity", "soak", 0, 30},
	"nine changes of changed resources":            {profile.ChangesConverged, profile.Min, "changed resources", "capacity", "soak", 0, 9},
	"a cycle after each change":                    {profile.CyclesAfterChange, profile.Min, "change", "capacity", "soak", 0, 1},
	"recovery time, operator state, 15 min":        {profile.MeasuredDuration, profile.Max, "recovery", "restore", "operator-state", 900, 0},
	"recovery time, database, 30 min":              {profile.MeasuredDuration, profile.Max, "recovery", "restore", "database", 1800, 0},
	"recovery time, both, 30 min":                  {profile.MeasuredDuration, profile.Max, "recovery", "restore", "both", 1800, 0},
	"recovery point, database, 5 min":              {profile.MeasuredDuration, profile.Max, "recovery point of the database", "restore", "database", 300, 0},
	"recovery point, database of both, 5 min":      {profile.MeasuredDuration, profile.Max, "recovery point of the database", "restore", "both", 300, 0},
	"recovery point, operator state, 5 min":        {profile.MeasuredDuration, profile.Max, "recovery point of operator state", "restore", "operator-state", 300, 0},
	"recovery point, operator of both, 5 min":      {profile.MeasuredDuration, profile.Max, "recovery point of operator state", "restore", "both", 300, 0},
	"unresolved Apply reported, 45 s":              {profile.AlertFiring, profile.Max, "PtahOperatorUnresolvedApply", "functional", "", 45, 0},
	"unresolved Apply over, 45 s":                  {profile.AlertResolution, profile.Max, "PtahOperatorUnresolvedApply", "functional", "", 45, 0},
	"view not synchronised reported, 105 s":        {profile.AlertFiring, profile.Max, "PtahOperatorUnresolvedViewNotSynced", "functional", "", 105, 0},
	"view not synchronised over, 45 s":             {profile.AlertResolution, profile.Max, "PtahOperatorUnresolvedViewNotSynced", "functional", "", 45, 0},
	"view read failures reported, 45 s":            {profile.AlertFiring, profile.Max, "PtahOperatorUnresolvedViewReadFailures", "functional", "", 45, 0},
	"view read failures over, 105 s":               {profile.AlertResolution, profile.Max, "PtahOperatorUnresolvedViewReadFailures", "functional", "", 105, 0},
	"overdue resource reported, 105 s":             {profile.AlertFiring, profile.Max, "PtahOperatorResourceOverdue", "functional", "", 105, 0},
	"overdue resource over, 45 s":                  {profile.AlertResolution, profile.Max, "PtahOperatorResourceOverdue", "functional", "", 45, 0},
	"stalled operation reported, 105 s":            {profile.AlertFiring, profile.Max, "PtahOperatorOperationStalled", "functional", "", 105, 0},
	"stalled operation over, 105 s":                {profile.AlertResolution, profile.Max, "PtahOperatorOperationStalled", "functional", "", 105, 0},
	"lock release owed reported, 105 s":            {profile.AlertFiring, profile.Max, "PtahOperatorLockReleaseOwed", "functional", "", 105, 0},
	"lock release owed over, 45 s":                 {profile.AlertResolution, profile.Max, "PtahOperatorLockReleaseOwed", "functional", "", 45, 0},
	"certificate expiring reported, 45 s":          {profile.AlertFiring, profile.Max, "PtahOperatorWebhookCertificateExpiring", "functional", "", 45, 0},
	"certificate expiring over, 45 s":              {profile.AlertResolution, profile.Max, "PtahOperatorWebhookCertificateExpiring", "functional", "", 45, 0},
	"large plan store reported, 45 s":              {profile.AlertFiring, profile.Max, "PtahOperatorPlanStoreLarge", "functional", "", 45, 0},
	"large plan store over, 45 s":                  {profile.AlertResolution, profile.Max, "PtahOperatorPlanStoreLarge", "functional", "", 45, 0},
	"failing operations reported, 45 s":            {profile.AlertFiring, profile.Max, "PtahOperatorOperationsFailing", "functional", "", 45, 0},
	"failing operations over, 345 s":               {profile.AlertResolution, profile.Max, "PtahOperatorOperationsFailing", "functional", "", 345, 0},
	"admission unavailable reported, 45 s":         {profile.AlertFiring, profile.Max, "PtahOperatorAdmissionUnavailable", "functional", "", 45, 0},
	"admission unavailable over, 345 s":            {profile.AlertResolution, profile.Max, "PtahOperatorAdmissionUnavailable", "functional", "", 345, 0},
	"failed upgrade reported, 45 s":                {profile.AlertFiring, profile.Max, "PtahOperatorUpgradeFailed", "functional", "", 45, 0},
	"failed upgrade over, 45 s":                    {profile.AlertResolution, profile.Max, "PtahOperatorUpgradeFailed", "functional", "", 45, 0},
	"no unauthorised statement in any suite":       {profile.UnauthorisedStatements, profile.Sum, "database", "functional", "", 0, 0},
	"no unauthorised statement under load":         {profile.UnauthorisedStatements, profile.Sum, "database", "capacity", "", 0, 0},
	"no unauthorised statement after a restore":    {profile.UnauthorisedStatements, profile.Sum, "database", "restore", "", 0, 0},
	"no repeated Apply under load":                 {profile.RepeatedApplies, profile.Sum, "authorisation", "capacity", "", 0, 0},
	"no lost resource, the overload included":      {profile.LostResources, profile.Sum, "every resource", "capacity", "", 0, 0},
	"no image but those of the release, any suite": {profile.ForeignImages, profile.Sum, "container", "functional", "", 0, 0},
}

// meets says whether some target demands at least what the number says.
func (n number) meets(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Targets, func(t profile.Target) bool {
		if t.Metric != n.metric || t.Statistic != n.statistic || t.Population != n.population || t.Cells.Matrix != n.matrix {
			return false
		}
		for _, value := range t.Cells.Where {
			if value != n.where {
				return false
			}
		}
		if n.atLeast > 0 {
			return t.Bound.AtLeast != nil && *t.Bound.AtLeast >= n.atLeast
		}
		return t.Bound.AtMost != nil && *t.Bound.AtMost <= n.atMost
	})
}

func TestTheProductionProfileDeclaresEveryNumber(t *testing.T) {
	p := profiles(t)["production"]
	for name, want := range declared {
		if want.where == "" && want.matrix == "functional" && want.metric.Source() == profile.SourceAlerts {
			want.where = suiteOf(p, want)
		}
		if !want.meets(p) {
			t.Errorf("no target says: %s", name)
		}
	}
	if p.Purpose != profile.Acceptance || p.Workload.Schemas != 10 || p.Workload.Migrations != 10 || p.Workload.Namespaces != 2 || p.Workload.Interval.String() != "2m" ||
		p.Installation.Replicas != 2 || p.Cluster.ControlPlanes != 3 || !slices.Equal(p.Support.Kubernetes, []string{"1.35", "1.36", "1.37"}) || len(p.Support.Platforms) != 2 {
		t.Error("the production profile declares another workload, installation or support")
	}
	if len(p.Exclusions) > 0 {
		t.Errorf("requirements are excluded: %v", p.Exclusions)
	}
}

// suiteOf is the one suite that an alert is measured in.
func suiteOf(p *profile.Profile, n number) string {
	for _, t := range p.Targets {
		if t.Metric == n.metric && t.Population == n.population {
			return t.Cells.Where["suite"]
		}
	}
	return ""
}

// Each number is missed when its target is gone, and when its bound is weaker by one.
func TestADroppedOrWeakenedNumberIsSeen(t *testing.T) {
	production := profiles(t)["production"]
	for name, want := range declared {
		p := &profile.Profile{Targets: slices.Clone(production.Targets)}
		if want.where == "" && want.metric.Source() == profile.SourceAlerts {
			want.where = suiteOf(p, want)
		}
		for i, target := range p.Targets {
			if target.Metric == want.metric && target.Population == want.population && target.Cells.Matrix == want.matrix {
				p.Targets[i].Bound = weaker(target.Bound)
			}
		}
		if want.meets(p) {
			t.Errorf("%s: a weaker target meets it", name)
		}
	}
}

func weaker(b profile.Bound) profile.Bound {
	if b.AtMost != nil {
		most := *b.AtMost + 1
		return profile.Bound{AtMost: &most}
	}
	least := *b.AtLeast - 1
	return profile.Bound{AtLeast: &least}
}

func TestOnlyProductionIsForAcceptance(t *testing.T) {
	for name, p := range profiles(t) {
		if (p.Purpose == profile.Acceptance) != (name == "production") {
			t.Errorf("%s is for %s", name, p.Purpose)
		}
	}
}
