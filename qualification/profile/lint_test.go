package profile

import (
	"fmt"
	"strings"
	"testing"
)

// target is the base target replaced by another.
func target(metric, statistic, window, bound, unit, population string) []string {
	return []string{"metric: manager-requests", "metric: " + metric, "statistic: max", "statistic: " + statistic, "{over: sliding, length: 60s}", "{over: " + window + "}",
		"{atMost: 600}", "{" + bound + "}", "unit: requests", "unit: " + unit, "population: every window", "population: " + population}
}

// more is another target before the base target.
func more(id, metric, statistic, window, bound, unit, population string) []string {
	return []string{"targets:", fmt.Sprintf("targets:\n  - {id: %s, requirement: PA-08, statement: x, metric: %s, statistic: %s, window: {over: %s}, bound: {%s}, unit: %s, population: %s, minSamples: 1, cells: {matrix: functional}}",
		id, metric, statistic, window, bound, unit, population)}
}

func join(lists ...[]string) []string {
	var all []string
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

const (
	monitoring = "\n  monitoring: {scrapeEvery: 5s, evaluateEvery: 5s, groupWait: 5s, rules: [{alert: PtahOperatorResourceOverdue, after: 60s, window: 5m}]}"
	leader     = "leaderElection: {namespace: ptah-system, name: leader}"
	scenario   = "scenarios:\n  - {name: fault-%[1]s, requirement: PA-08, statement: x, fault: %[1]s, cells: {matrix: functional}}"
)

func injects(class string) []string { return []string{"scenarios:", fmt.Sprintf(scenario, class)} }

func faulty(fault string) []string { return []string{"quotas: []", "faults: [" + fault + "]"} }

func variant(text string) []string {
	return []string{"quotas: []", "variants:\n    - {name: other, statement: x, cells: {matrix: functional}, " + text + "}"}
}

func refreshes(bound string) []string {
	return more("refresh", "manager-requests", "max", "measurement", "atMost: "+bound, "requests", "refresh")
}

func applies(bound string) []string {
	return more("apply", "manager-requests", "max", "measurement", "atMost: "+bound, "requests", "apply")
}

func cycles(population string) []string {
	return target("read-only-cycles", "min", "run", "atLeast: 30", "cycles", population)
}

func age(bound string) []string {
	return target("observation-age", "max", "run", "atMost: "+bound, "seconds", "every resource")
}

func quota(text string) []string {
	return []string{"quotas: []", "quotas: [{resource: secrets, limit: 128, " + text + "}]"}
}

func alert(metric, bound string) []string {
	return join(target(metric, "max", "measurement", "atMost: "+bound, "seconds", "PtahOperatorResourceOverdue"), []string{leader, leader + monitoring})
}

type lintCase struct {
	change []string
	want   string // of the only finding; empty for none
}

// lintCases come in pairs: the last value that is accepted, and the first that is refused.
var lintCases = map[string]lintCase{
	"should accept the base profile": {nil, ""},

	"should refuse 30 cycles where changes cost three intervals":         {cycles("changed resources"), "1h30m / 2m = 45 intervals - 9 changes x 3 intervals each = 18"},
	"should refuse 30 cycles where changes cost two intervals":           {join(cycles("changed resources"), []string{"costIntervals: 3", "costIntervals: 2"}), "45 intervals - 9 changes x 2 intervals each = 27"},
	"should refuse 30 cycles of every resource":                          {cycles("every resource"), `no resource of "every resource" can reach 30 cycles, whatever the operator does`},
	"should accept 30 cycles of unchanged resources":                     {cycles("unchanged resources"), ""},
	"should accept cycles that can just be reached":                      {join(cycles("every resource"), []string{"atLeast: 30", "atLeast: 18"}), ""},
	"should refuse one cycle more":                                       {join(cycles("every resource"), []string{"atLeast: 30", "atLeast: 19"}), "= 18"},
	"should refuse more cycles than there are intervals":                 {join(cycles("unchanged resources"), []string{"atLeast: 30", "atLeast: 46"}), "1h30m / 2m = 45 intervals"},
	"should refuse cycles that maintenance leaves no room for":           {join(cycles("unchanged resources"), []string{"quotas: []", "maintenance: {every: 10m, rounds: 9, resources: 20, costIntervals: 2}"}), "45 intervals - 9 maintenances x 2 intervals each = 27"},
	"should refuse cycles over no declared time":                         {join(cycles("unchanged resources"), []string{"  duration: 90m\n", "", "  changes: {every: 10m, rounds: 9, resources: 10, costIntervals: 3}\n", ""}), "workload.duration"},
	"should accept a cycle after each change":                            {target("cycles-after-change", "min", "run", "atLeast: 2", "cycles", "change"), ""},
	"should refuse more cycles than lie between changes":                 {target("cycles-after-change", "min", "run", "atLeast: 3", "cycles", "change"), "10m / 2m = 5 intervals from change to change - 3 that a change costs = 2"},
	"should refuse cycles after each change that maintenance takes":      {join(target("cycles-after-change", "min", "run", "atLeast: 2", "cycles", "change"), []string{"quotas: []", "maintenance: {every: 10m, rounds: 9, resources: 20, costIntervals: 1}"}), "- 1 that a maintenance costs = 1"},
	"should accept as many changes as rounds":                            {target("changes-converged", "min", "run", "atLeast: 9", "changes", "changed resources"), ""},
	"should refuse more changes than rounds":                             {target("changes-converged", "min", "run", "atLeast: 10", "changes", "changed resources"), "there are 9 rounds"},
	"should refuse a batch that outlasts the next":                       {target("measured-duration", "max", "measurement", "atMost: 601", "seconds", "change batch"), "a batch may take 10m1s, the next one begins after 10m"},
	"should accept a batch that ends with the next":                      {target("measured-duration", "max", "measurement", "atMost: 600", "seconds", "change batch"), ""},
	"should accept requests that fit the window":                         {refreshes("60"), ""},
	"should refuse requests that exceed it":                              {refreshes("61"), "20 resources x 1m / 2m = 10 refreshes in a window, x 61 requests each = 610, the bound is 600"},
	"should accept requests of refreshes and changes":                    {join(applies("75"), refreshes("50")), "1m / 10m = 125, = 625"},
	"should spread changes over the time of a batch":                     {join(applies("40"), refreshes("25"), more("batch", "measured-duration", "max", "measurement", "atMost: 60", "seconds", "change batch")), "x 25 requests each = 250, + 10 changes x (25 + 40) requests x 1m / 1m = 650, = 900, the bound is 600"},
	"should accept changes that have time enough":                        {join(applies("40"), refreshes("25"), more("batch", "measured-duration", "max", "measurement", "atMost: 300", "seconds", "change batch")), ""},
	"should accept an age of interval and slot":                          {age("180"), ""},
	"should refuse an age below":                                         {age("179"), "an interval of 2m plus a slot delay of half of it is an age of 180 s, the bound is 179 s"},
	"should count the operation into the age":                            {join(age("239"), more("latency", "operation-latency", "max", "run", "atMost: 60", "seconds", "operation")), "plus an operation of 1m is an age of 240 s, the bound is 239 s"},
	"should accept memory below the limit":                               {join(target("manager-memory", "max", "run", "atMost: 255", "mebibytes", "manager process"), []string{leader, leader + "\n  manager: {cpuRequestMillicores: 50, memoryRequestMebibytes: 96, memoryLimitMebibytes: 256}"}), ""},
	"should refuse memory that the kernel takes first":                   {join(target("manager-memory", "max", "run", "atMost: 256", "mebibytes", "manager process"), []string{leader, leader + "\n  manager: {cpuRequestMillicores: 50, memoryRequestMebibytes: 96, memoryLimitMebibytes: 256}"}), "the bound is 256 MiB, the memory limit is 256 MiB"},
	"should accept a deadline after the rule":                            {alert("alert-firing", "75"), ""},
	"should refuse a deadline that the rule itself exceeds":              {alert("alert-firing", "74"), "the condition must last 1m + a scrape of 5s + an evaluation of 5s + a group wait of 5s = 75 s, the bound is 74 s"},
	"should accept a resolution after the window":                        {alert("alert-resolution", "315"), ""},
	"should refuse a resolution that the window itself exceeds":          {alert("alert-resolution", "314"), "the rule looks back 5m + a scrape of 5s + an evaluation of 5s + a group wait of 5s = 315 s"},
	"should refuse a deadline without monitoring":                        {target("alert-firing", "max", "measurement", "atMost: 75", "seconds", "PtahOperatorResourceOverdue"), "installation.monitoring is not declared"},
	"should refuse a deadline of an alert without a rule":                {join(target("alert-firing", "max", "measurement", "atMost: 75", "seconds", "PtahOperatorPlanStoreLarge"), []string{leader, leader + monitoring}), "has no rule PtahOperatorPlanStoreLarge"},
	"should refuse a population that nothing measures":                   {target("measured-duration", "max", "measurement", "atMost: 1", "seconds", "cold-start"), `nothing measures measured-duration of the population "cold-start", use one of: refresh, apply, cold start`},
	"should refuse a percentile of 19 samples":                           {[]string{"statistic: max", "statistic: p95", "minSamples: 1", "minSamples: 19"}, "100 / (100 - 95) = 20"},
	"should accept a percentile of 20 samples":                           {[]string{"statistic: max", "statistic: p95", "minSamples: 1", "minSamples: 20"}, ""},
	"should refuse a p99 of 99 samples":                                  {[]string{"statistic: max", "statistic: p99", "minSamples: 1", "minSamples: 99"}, "= 100"},
	"should refuse a percentile of nine batches":                         {join(target("measured-duration", "p95", "measurement", "atMost: 300", "seconds", "change batch"), []string{"minSamples: 1", "minSamples: 20"}), `no cell can yield 20 samples of the population "change batch": 9 rounds of changes x 1 = 9`},
	"should accept nine batches":                                         {join(target("measured-duration", "max", "measurement", "atMost: 300", "seconds", "change batch"), []string{"minSamples: 1", "minSamples: 9"}), ""},
	"should refuse more processes than replicas":                         {join(target("manager-memory", "max", "run", "atMost: 192", "mebibytes", "manager process"), []string{"minSamples: 1", "minSamples: 3"}), "there are 2 replicas"},
	"should refuse more servers than control planes":                     {join(target("priority-rejections", "sum", "run", "atMost: 0", "requests", "API server"), []string{"minSamples: 1", "minSamples: 4"}), "there are 3 control planes"},
	"should refuse more resources than there are":                        {join(age("180"), []string{"minSamples: 1", "minSamples: 21"}), "there are 20 resources"},
	"should refuse more unchanged resources than there are":              {join(cycles("unchanged resources"), []string{"minSamples: 1", "minSamples: 11"}), "20 resources - 10 changed - 0 replaced = 10"},
	"should refuse more operations than the time holds":                  {join(target("operation-latency", "max", "run", "atMost: 60", "seconds", "operation"), []string{"minSamples: 1", "minSamples: 1081"}), "20 resources x 1h30m / 2m = 900 refreshes + 90 changes x an Apply and its proof = 1080 operations"},
	"should accept as many operations as the time holds":                 {join(target("operation-latency", "max", "run", "atMost: 60", "seconds", "operation"), []string{"minSamples: 1", "minSamples: 1080"}), ""},
	"should refuse more readings than the time holds":                    {join(target("running-operations", "max", "run", "atMost: 20", "pods", "reading"), []string{"minSamples: 1", "minSamples: 1081", "quotas: []", "sampleEvery: 5s"}), "1h30m / 5s = 1080 readings"},
	"should refuse readings that nobody takes":                           {target("running-operations", "max", "run", "atMost: 20", "pods", "reading"), "workload.sampleEvery, which is not declared"},
	"should refuse checkpoints without maintenance":                      {target("retained-plans", "max", "run", "atMost: 128", "mebibytes", "checkpoint"), "the workload has no maintenance"},
	"should refuse a window longer than the run":                         {[]string{"length: 60s", "length: 91m", "atMost: 600", "atMost: 600000"}, "a window of 1h31m does not fit into a workload of 1h30m"},
	"should accept a window as long as the run":                          {[]string{"length: 60s", "length: 90m", "atMost: 600", "atMost: 600000"}, ""},
	"should refuse a window of less than two readings":                   {join(target("client-throttling", "max", "sliding, length: 60s", "atMost: 10", "seconds", "manager process"), []string{"quotas: []", "sampleEvery: 31s"}), "a window of 1m, a reading every 31s"},
	"should refuse rounds that end before the run":                       {[]string{"rounds: 9", "rounds: 8"}, "8 rounds x 10m = 1h20m, the workload lasts 1h30m"},
	"should refuse rounds that outlast the run":                          {[]string{"every: 10m", "every: 11m"}, "9 rounds x 11m = 1h39m"},
	"should refuse a round of more resources than there are":             {[]string{"rounds: 9, resources: 10", "rounds: 9, resources: 21"}, "21 of 20"},
	"should refuse to replace resources that are never idle":             {[]string{"quotas: []", "churn: {every: 10m, rounds: 9, resources: 11, costIntervals: 1}"}, "10 changed + 11 replaced in a round, of 20"},
	"should refuse a slow database shorter than two intervals":           {join(injects("database-delay"), faulty("{class: database-delay, delay: 30s, hold: 3m}")), "it lasts 3m, and two intervals are 4m"},
	"should accept a slow database of two intervals":                     {join(injects("database-delay"), faulty("{class: database-delay, delay: 30s, hold: 4m}")), ""},
	"should refuse a slow database that is not slow":                     {join(injects("database-delay"), faulty("{class: database-delay, hold: 4m}")), "say by how much"},
	"should refuse a fault of the workload that nothing injects":         {faulty("{class: retention}"), "workload.faults (retention): no scenario injects it"},
	"should accept an overload of twice the fleet":                       {join(injects("overload"), variant("schemas: 20, migrations: 20, duration: 10m, faults: [{class: overload}]")), ""},
	"should refuse an overload of less":                                  {join(injects("overload"), variant("schemas: 20, migrations: 19, duration: 10m, faults: [{class: overload}]")), "39 resources, twice 20 is 40"},
	"should refuse an overload with another fault":                       {join(injects("overload"), injects("retention"), variant("schemas: 20, migrations: 20, duration: 10m, faults: [{class: overload}, {class: retention}]")), "no evidence for another fault"},
	"should refuse two variants of the same cells":                       {[]string{"quotas: []", "variants:\n    - {name: a, statement: x, cells: {matrix: functional, where: {suite: a}}}\n    - {name: b, statement: x, cells: {matrix: functional}}"}, "the variant a has some of the same cells"},
	"should judge a target by the variant of its cells":                  {join(cycles("unchanged resources"), variant("duration: 58m")), "requests in the workload other"},
	"should refuse changes where the variant has none":                   {join(target("changes-converged", "min", "run", "atLeast: 9", "changes", "changed resources"), variant("duration: 90m")), "requests in the workload other: no cell can yield 1 samples of the population \"changed resources\": a round changes 0 resources"},
	"should accept a quota that holds":                                   {quota("perOperation: 1, retainedFor: 24m"), ""},
	"should refuse a quota that the workload exhausts":                   {quota("perOperation: 1, retainedFor: 26m"), "10 resources in a namespace x 26m / 2m = 130 operations kept, x 1 each = 130, the limit is 128"},
	"should accept 115 operations beside 13 Secrets that are there":      {quota("fixed: 13, perOperation: 1, retainedFor: 22m"), ""},
	"should refuse a Secret for each operation kept for an hour":         {quota("fixed: 13, perOperation: 1, retainedFor: 60m"), "10 resources in a namespace x 1h / 2m = 300 operations kept, x 1 each = 300, + 13 that are always there = 313, the limit is 128"},
	"should refuse what the first operation beyond 115 exhausts":         {quota("fixed: 13, perOperation: 1, retainedFor: 23m"), "= 120, + 13 that are always there = 133"},
	"should count what changes hold":                                     {quota("perOperation: 1, retainedFor: 20m, perChange: 1, changeHeld: 60m"), "+ 30 changes kept x 1 each = 130"},
	"should count what changes hold to the last round only":              {quota("perOperation: 0, perChange: 2, changeHeld: 500m"), ""},
	"should count what replacements hold":                                {[]string{"quotas: []", "churn: {every: 10m, rounds: 9, resources: 4, costIntervals: 1}\n  quotas: [{resource: plans, limit: 62, perOperation: 0, perChange: 1, changeHeld: 90m}]"}, "+ 45 changes kept x 1 each = 45, + 18 replacements kept x 1 each = 63, the limit is 62"},
	"should hold the quotas of a variant against its own fleet":          {join([]string{"quotas: []", "quotas: [{resource: pods, limit: 24, perOperation: 1, retainedFor: 2m}]\n  variants: [{name: other, statement: x, cells: {matrix: functional}, schemas: 30, migrations: 20}]"}), "workload.variants (other).quotas[0] (pods): the workload exhausts it: 25 resources"},
	"should refuse a quota of nothing":                                   {[]string{"quotas: []", "quotas: [{resource: \"\", limit: 0, perOperation: 0}]"}, "name the resource"},
	"should refuse a fault that nothing injects":                         {[]string{"minSamples: 1", "minSamples: 1\n    exclude: [drift]"}, "leaves out the fault drift, which no scenario injects in its cells"},
	"should accept a fault that a scenario injects":                      {join(injects("drift"), []string{"minSamples: 1", "minSamples: 1\n    exclude: [drift]"}), ""},
	"should refuse a fault that only scenarios of other cells inject":    {[]string{"scenarios:", "scenarios:\n  - {name: fault, requirement: PA-08, statement: x, fault: drift, cells: {matrix: functional, where: {suite: a}}}", "minSamples: 1\n    cells: {matrix: functional}", "minSamples: 1\n    exclude: [drift]\n    cells: {matrix: functional, where: {suite: b}}"}, "leaves out the fault drift, which no scenario injects in its cells"},
	"should refuse a target of a matrix outside the coverage":            {[]string{"minSamples: 1\n    cells: {matrix: functional}", "minSamples: 1\n    cells: {matrix: capacity}"}, "the matrix capacity, which coverage does not name"},
	"should refuse a covered matrix that nothing is demanded of":         {[]string{"- {matrix: functional, depth: smoke}", "- {matrix: functional, depth: smoke}\n  - {matrix: restore, depth: release}"}, "coverage[1] (restore): no scenario and no target demands anything"},
	"should refuse a matrix that is covered twice":                       {[]string{"- {matrix: functional, depth: smoke}", "- {matrix: functional, depth: smoke}\n  - {matrix: functional, depth: release}"}, "covered twice"},
	"should refuse two bounds on one number":                             {[]string{"targets:", "targets:\n  - {id: rival, requirement: PA-08, statement: x, metric: manager-requests, statistic: max, window: {over: sliding, length: 1m}, bound: {atMost: 700}, unit: requests, population: every window, minSamples: 1, cells: {matrix: functional}}"}, "requests: rival bounds the same number in the same cells: at most 700 requests, and at most 600 requests: keep one"},
	"should accept two bounds on one number of different cells":          {[]string{"targets:", "targets:\n  - {id: rival, requirement: PA-08, statement: x, metric: manager-requests, statistic: max, window: {over: sliding, length: 1m}, bound: {atMost: 700}, unit: requests, population: every window, minSamples: 1, cells: {matrix: functional, where: {suite: a}}}", "minSamples: 1\n    cells: {matrix: functional}", "minSamples: 1\n    cells: {matrix: functional, where: {suite: b}}"}, ""},
	"should accept an upper and a lower bound on one number":             {more("lower", "manager-requests", "max", "sliding, length: 60s", "atLeast: 1", "requests", "every window"), ""},
	"should refuse a percentile of more samples than two variants yield": {join(age("180"), variant("schemas: 1, migrations: 1"), []string{"minSamples: 1", "minSamples: 3"}), "requests in the workload other: no cell can yield 3 samples"},
}

func TestLint(t *testing.T) {
	for name, test := range lintCases {
		t.Run(name, func(t *testing.T) {
			var text []string
			for _, finding := range Lint(decode(t, with(t, test.change...))) {
				text = append(text, finding.String())
			}
			if test.want == "" && len(text) > 0 {
				t.Errorf("found %q, want nothing", text)
			}
			if test.want != "" && (len(text) != 1 || !strings.Contains(text[0], test.want)) {
				t.Errorf("found %q, want one finding with %q", text, test.want)
			}
		})
	}
}
