package profile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// base is a small valid profile that tests change by replacing text.
const base = `apiVersion: qualification.ptah.run/v1
kind: Profile
name: small
purpose: development
summary: A profile for tests.
revision: 1
revisions:
  - {number: 1, date: 2026-11-29, reason: First.}
support:
  kubernetes: ["1.37"]
  databases: [{engine: PostgreSQL, version: "17"}]
  platforms: [linux/amd64]
cluster: {controlPlanes: 3, workers: 1}
installation:
  release: ptah-operator
  namespace: ptah-system
  replicas: 2
  managerIdentity: system:serviceaccount:ptah-system:ptah-operator
  leaderElection: {namespace: ptah-system, name: leader}
workload:
  schemas: 10
  migrations: 10
  namespaces: 2
  interval: 2m
  duration: 90m
  changes: {every: 10m, rounds: 9, resources: 10, costIntervals: 3}
  quotas: []
coverage:
  - {matrix: functional, depth: smoke}
scenarios:
  - {name: one, requirement: PA-02, statement: It holds., cells: {matrix: functional}}
targets:
  - id: requests
    requirement: PA-08
    statement: Few requests.
    metric: manager-requests
    statistic: max
    window: {over: sliding, length: 60s}
    bound: {atMost: 600}
    unit: requests
    population: every window
    minSamples: 1
    cells: {matrix: functional}
notShown: [Much.]
`

func decode(t testing.TB, text string) *Profile {
	t.Helper()
	p, err := Decode("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// with replaces text in the base profile, and fails where there is nothing to replace.
func with(t testing.TB, pairs ...string) string {
	t.Helper()
	text := base
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the profile holds no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func TestTheProfilesOfTheRepositoryAreSound(t *testing.T) {
	paths, err := filepath.Glob("../../profiles/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode(path, data)
		if err != nil {
			t.Error(err)
			continue
		}
		if findings := Lint(p); len(findings) > 0 {
			t.Errorf("%s: %v", path, findings)
		}
		if want := strings.TrimSuffix(filepath.Base(path), ".yaml"); p.Name != want {
			t.Errorf("%s declares the profile %s", path, p.Name)
		}
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		change []string
		want   string
	}{
		"should refuse an unknown field":                      {[]string{"purpose: development", "purpose: development\nsecret: x"}, "p.yaml:5: secret: it is no field"},
		"should refuse another apiVersion":                    {[]string{"ptah.run/v1", "ptah.run/v2"}, "apiVersion: it must be"},
		"should refuse another kind":                          {[]string{"kind: Profile", "kind: Matrix"}, "kind: it must be Profile"},
		"should refuse an unknown purpose":                    {[]string{"development", "production"}, `"production" is unknown, use one of: acceptance, development`},
		"should refuse a missing purpose":                     {[]string{"purpose: development\n", ""}, "purpose: say whether"},
		"should refuse a name with blanks":                    {[]string{"name: small", "name: Very small"}, "name: give the profile a name"},
		"should refuse a missing summary":                     {[]string{"summary: A profile for tests.\n", ""}, "summary: say in a sentence"},
		"should refuse a profile without limits":              {[]string{"[Much.]", "[]"}, "notShown: say at least one thing"},
		"should refuse an empty coverage":                     {[]string{"\n  - {matrix: functional, depth: smoke}", " []"}, "coverage: name at least one matrix"},
		"should refuse a revision without its entry":          {[]string{"revision: 1", "revision: 2"}, "revision: it must be the number of the last entry"},
		"should refuse a gap in revisions":                    {[]string{"revision: 1", "revision: 2", "number: 1", "number: 2"}, "this one must be 1"},
		"should refuse a revision without a reason":           {[]string{"reason: First.", `reason: ""`}, "revisions[0].reason: give the reason"},
		"should refuse a day that does not exist":             {[]string{"2026-11-29", "2026-11-31"}, "it must be a day"},
		"should refuse a minor that is none":                  {[]string{`["1.37"]`, `["37"]`}, "support.kubernetes[0]: it must be a minor"},
		"should refuse a minor that YAML reads as number":     {[]string{`["1.37"]`, `[1.37]`}, "put 1.37 in quotes"},
		"should refuse an unknown engine":                     {[]string{"engine: PostgreSQL", "engine: Oracle"}, "support.databases[0]"},
		"should refuse an unknown platform":                   {[]string{"linux/amd64", "windows/amd64"}, "support.platforms[0]"},
		"should refuse a cluster without control planes":      {[]string{"controlPlanes: 3", "controlPlanes: 0"}, "cluster: a cluster has at least one"},
		"should refuse zero replicas":                         {[]string{"replicas: 2", "replicas: 0"}, "installation.replicas"},
		"should refuse a missing identity":                    {[]string{"system:serviceaccount:ptah-system:ptah-operator", `""`}, "installation: name release"},
		"should refuse a missing leader election Lease":       {[]string{"name: leader", `name: ""`}, "installation.leaderElection"},
		"should refuse a workload of nothing":                 {[]string{"schemas: 10", "schemas: 0", "migrations: 10", "migrations: 0"}, "workload: declare at least one"},
		"should refuse an interval of zero":                   {[]string{"interval: 2m", "interval: 0s"}, "workload.interval: it must be a positive"},
		"should refuse an unknown requirement":                {[]string{"PA-02", "PA-13"}, `"PA-13" is unknown`},
		"should refuse a scenario declared twice":             {[]string{"scenarios:", "scenarios:\n  - {name: one, requirement: PA-02, statement: It holds., cells: {matrix: functional}}"}, "scenarios[1].name: one is declared twice"},
		"should refuse an unknown fault":                      {[]string{"statement: It holds.", "fault: meteor, statement: It holds."}, `"meteor" is unknown`},
		"should refuse a scenario that says nothing":          {[]string{"statement: It holds., ", ""}, "scenarios[0].statement"},
		"should refuse a scenario without a matrix":           {[]string{"cells: {matrix: functional}}", "cells: {}}"}, "scenarios[0].cells.matrix"},
		"should refuse an unknown metric":                     {[]string{"manager-requests", "manager-requets"}, `"manager-requets" is unknown`},
		"should refuse an unknown statistic":                  {[]string{"statistic: max", "statistic: p96"}, `"p96" is unknown`},
		"should refuse the unit of another metric":            {[]string{"unit: requests", "unit: seconds"}, "manager-requests is counted in requests"},
		"should refuse a bound without a side":                {[]string{"{atMost: 600}", "{}"}, "targets[0].bound: give exactly one"},
		"should refuse a bound with two sides":                {[]string{"{atMost: 600}", "{atMost: 600, atLeast: 1}"}, "targets[0].bound: give exactly one"},
		"should refuse a population without a name":           {[]string{"population: every window", `population: ""`}, "targets[0].population"},
		"should refuse zero samples":                          {[]string{"minSamples: 1", "minSamples: 0"}, "targets[0].minSamples: at least one"},
		"should refuse a sliding window without a length":     {[]string{"sliding, length: 60s", "sliding"}, "targets[0].window: a sliding window has a length"},
		"should refuse a run window with a length":            {[]string{"sliding, length: 60s", "run, length: 60s"}, "only a sliding window has one"},
		"should refuse a window the metric does not have":     {[]string{"metric: manager-requests", "metric: rate-limited-responses", "unit: requests", "unit: responses"}, "targets[0].window.over"},
		"should refuse an exclusion of authorised work":       {[]string{"notShown:", "exclusions: [{requirement: PA-02, scope: all, reason: x}]\nnotShown:"}, "PA-02 may never be excluded"},
		"should refuse an exclusion of interruption safety":   {[]string{"notShown:", "exclusions: [{requirement: PA-03, scope: all, reason: x}]\nnotShown:"}, "PA-03 may never be excluded"},
		"should refuse an exclusion of authority":             {[]string{"notShown:", "exclusions: [{requirement: PA-05, scope: all, reason: x}]\nnotShown:"}, "PA-05 may never be excluded"},
		"should refuse an exclusion without a reason":         {[]string{"notShown:", "exclusions: [{requirement: PA-07, scope: all}]\nnotShown:"}, "exclusions[0]: give requirement"},
		"should refuse one requirement excluded twice":        {[]string{"notShown:", "exclusions: [{requirement: PA-07, scope: a, reason: x}, {requirement: PA-07, scope: b, reason: x}]\nnotShown:"}, "PA-07 is excluded twice"},
		"should refuse a negative bound":                      {[]string{"{atMost: 600}", "{atMost: -1}"}, "targets[0].bound: it must lie between 0 and"},
		"should refuse a bound beyond all numbers":            {[]string{"{atMost: 600}", "{atMost: 1e10}"}, "targets[0].bound: it must lie between 0 and 1000000000"},
		"should refuse a maximum of each":                     {[]string{"minSamples: 1", "minSamples: 1\n    per: process"}, "targets[0].per: a max is the same"},
		"should refuse an unknown grouping":                   {[]string{"minSamples: 1", "minSamples: 1\n    per: planet"}, `"planet" is unknown, use one of: api-server, process, resource`},
		"should refuse more nodes than anybody runs":          {[]string{"controlPlanes: 3", "controlPlanes: 3000000"}, "cluster: nobody runs so many"},
		"should refuse more resources than anybody has":       {[]string{"schemas: 10", "schemas: 2000000"}, "workload.schemas: it must lie between 0 and 1000000"},
		"should refuse fewer rows than none":                  {[]string{"quotas: []", "rowsPerDatabase: -1"}, "workload.rowsPerDatabase"},
		"should refuse an interval of a year":                 {[]string{"interval: 2m", "interval: 9000h"}, "workload: no interval and no duration is longer than 720h"},
		"should refuse rounds that never come":                {[]string{"every: 10m, rounds: 9", "rounds: 9"}, "workload.changes.every: declare the time"},
		"should refuse zero rounds":                           {[]string{"rounds: 9", "rounds: 0"}, "workload.changes.rounds: declare at least one"},
		"should refuse a round of nothing":                    {[]string{"rounds: 9, resources: 10", "rounds: 9, resources: 0"}, "workload.changes.resources: a round has"},
		"should refuse a negative cost":                       {[]string{"costIntervals: 3", "costIntervals: -1"}, "workload.changes.costIntervals: it cannot be negative"},
		"should refuse churn without a time":                  {[]string{"quotas: []", "churn: {rounds: 9, resources: 4, costIntervals: 1}"}, "workload.churn.every"},
		"should refuse a fault without a class":               {[]string{"quotas: []", "faults: [{hold: 3m}]"}, "workload.faults[0].class: name the class"},
		"should refuse an empty range of sizes":               {[]string{"quotas: []", "planSizes: [{name: small, fromBytes: 10, toBytes: 9}]"}, "workload.planSizes[0]: give a name and a range"},
		"should refuse a history of nothing":                  {[]string{"quotas: []", "histories: [2, 0]"}, "workload.histories[1]: a history has"},
		"should refuse unrelated objects nowhere":             {[]string{"quotas: []", "unrelated: {namespaces: 0, configMaps: 1, configMapBytes: 1, completedJobs: 1}"}, "workload.unrelated: unrelated objects are"},
		"should refuse objects that nobody says how long":     {[]string{"quotas: []", "quotas: [{resource: pods, limit: 24, perOperation: 1}]"}, "workload.quotas[0].retainedFor: say how long"},
		"should refuse a time for objects that are none":      {[]string{"quotas: []", "quotas: [{resource: pods, limit: 24, perOperation: 0, retainedFor: 1m}]"}, "workload.quotas[0].retainedFor: say how long"},
		"should refuse changes that hold for no time":         {[]string{"quotas: []", "quotas: [{resource: pods, limit: 24, perOperation: 0, perChange: 1}]"}, "workload.quotas[0].changeHeld: say how long"},
		"should refuse a quota held for a year":               {[]string{"quotas: []", "quotas: [{resource: pods, limit: 24, perOperation: 1, retainedFor: 9000h}]"}, "workload.quotas[0]: nothing is held for longer"},
		"should refuse a quota beyond all numbers":            {[]string{"quotas: []", "quotas: [{resource: pods, limit: 2000000, perOperation: 0}]"}, "workload.quotas[0]: no number in it"},
		"should refuse a variant without a name":              {[]string{"quotas: []", "variants: [{statement: x, cells: {matrix: functional}}]"}, "workload.variants[0].name: give each variant a name"},
		"should refuse two variants of one name":              {[]string{"quotas: []", "variants: [{name: a, statement: x, cells: {matrix: functional}}, {name: a, statement: x, cells: {matrix: restore}}]"}, "workload.variants[1].name"},
		"should refuse a variant that says nothing":           {[]string{"quotas: []", "variants: [{name: a, cells: {matrix: functional}}]"}, "workload.variants[0].statement"},
		"should refuse a variant of no matrix":                {[]string{"quotas: []", "variants: [{name: a, statement: x, cells: {}}]"}, "workload.variants[0].cells.matrix"},
		"should refuse a variant of a year":                   {[]string{"quotas: []", "variants: [{name: a, statement: x, cells: {matrix: functional}, duration: 9000h}]"}, "workload.variants[0].duration"},
		"should refuse a variant of less than nothing":        {[]string{"quotas: []", "variants: [{name: a, statement: x, cells: {matrix: functional}, approvals: -1}]"}, "workload.variants[0]: schemas, migrations and approvals"},
		"should refuse a variant whose rounds are none":       {[]string{"quotas: []", "variants: [{name: a, statement: x, cells: {matrix: functional}, changes: {every: 1m, rounds: 0, resources: 1, costIntervals: 0}}]"}, "workload.variants[0].changes.rounds"},
		"should refuse a variant with a fault of no class":    {[]string{"quotas: []", "variants: [{name: a, statement: x, cells: {matrix: functional}, faults: [{hold: 1m}]}]"}, "workload.variants[0].faults[0].class"},
		"should refuse a memory limit below the request":      {[]string{leader, leader + "\n  manager: {cpuRequestMillicores: 50, memoryRequestMebibytes: 96, memoryLimitMebibytes: 95}"}, "installation.manager: give requests"},
		"should refuse half of the execution limits":          {[]string{leader, leader + "\n  execution: {activeDeadline: 15m}"}, "installation.execution: give activeDeadline"},
		"should refuse monitoring that never scrapes":         {[]string{leader, leader + "\n  monitoring: {evaluateEvery: 5s, groupWait: 5s, rules: []}"}, "installation.monitoring: give scrapeEvery"},
		"should refuse an alert with two rules":               {[]string{leader, leader + "\n  monitoring: {scrapeEvery: 5s, evaluateEvery: 5s, groupWait: 5s, rules: [{alert: A}, {alert: A}]}"}, "installation.monitoring.rules[1].alert: name each alert once"},
		"should refuse a coverage without a depth":            {[]string{"{matrix: functional, depth: smoke}", "{matrix: functional}"}, "coverage[0]: name a matrix and a depth"},
		"should refuse a revision without a day":              {[]string{"date: 2026-11-29, ", ""}, "revisions[0].date: give the day"},
		"should refuse a support of nothing":                  {[]string{"platforms: [linux/amd64]", "platforms: []"}, "support: name at least one"},
		"should refuse a scenario without a name":             {[]string{"{name: one, ", "{"}, "scenarios[0].name: give it a name"},
		"should refuse a scenario of no requirement":          {[]string{"{name: one, requirement: PA-02, ", "{name: one, "}, "scenarios[0].requirement: name the requirement"},
		"should refuse a target declared twice":               {more("requests", "manager-requests", "max", "run", "atMost: 1", "requests", "x"), "targets[1].id: requests is declared twice"},
		"should refuse a target without an id":                {[]string{"id: requests", "id: Many requests"}, "targets[0].id: give it an id"},
		"should refuse a target of no requirement":            {[]string{"    requirement: PA-08\n", ""}, "targets[0].requirement: name the requirement"},
		"should refuse a target that says nothing":            {[]string{"    statement: Few requests.\n", ""}, "targets[0].statement: say in a sentence"},
		"should refuse a target of no metric":                 {[]string{"    metric: manager-requests\n", ""}, "targets[0].metric: name a metric"},
		"should refuse a target of no statistic":              {[]string{"    statistic: max\n", ""}, "targets[0].statistic: name a statistic"},
		"should refuse a target of no matrix":                 {[]string{"minSamples: 1\n    cells: {matrix: functional}", "minSamples: 1\n    cells: {}"}, "targets[0].cells.matrix: name the matrix"},
		"should refuse a workload in no namespace":            {[]string{"namespaces: 2", "namespaces: 0"}, "workload.namespaces: the workload is in at least one"},
		"should refuse a workload without an interval":        {[]string{"  interval: 2m\n", ""}, "workload.interval: declare the interval"},
		"should refuse a profile that demands nothing at all": {[]string{base[strings.Index(base, "scenarios:"):strings.Index(base, "notShown:")], ""}, "an empty set is never a pass"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("p.yaml", []byte(with(t, test.change...)))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "p.yaml") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one sentence with %q", err, test.want)
			}
		})
	}
}

func TestAnAcceptanceProfileAccountsForEveryRequirement(t *testing.T) {
	findings := Lint(decode(t, with(t, "purpose: development", "purpose: acceptance")))
	if len(findings) != 10 {
		t.Errorf("%d findings, want one for each of the ten requirements nothing is declared for: %v", len(findings), findings)
	}
	excluded := with(t, "purpose: development", "purpose: acceptance", "notShown:", "exclusions: [{requirement: PA-07, scope: all, reason: x}]\nnotShown:")
	if findings := Lint(decode(t, excluded)); len(findings) != 9 {
		t.Errorf("%d findings with one exclusion", len(findings))
	}
}

func TestDiffSaysInWordsWhatChanged(t *testing.T) {
	cases := map[string]struct {
		change []string
		want   []string
	}{
		"nothing":             {nil, nil},
		"a stricter target":   {[]string{"atMost: 600", "atMost: 300"}, []string{"target requests is stricter: at most 300 requests instead of at most 600 requests"}},
		"a weaker target":     {[]string{"atMost: 600", "atMost: 7000"}, []string{"target requests is weaker: at most 7000 requests instead of at most 600 requests"}},
		"a target turned":     {[]string{"atMost: 600", "atLeast: 600"}, []string{"target requests is turned around"}},
		"a renamed target":    {[]string{"id: requests", "id: other"}, []string{"target requests (at most 600 requests) is gone", "target other is new"}},
		"another statistic":   {[]string{"statistic: max", "statistic: sum"}, []string{"target requests: statistic is sum instead of max"}},
		"a scenario dropped":  {[]string{"  - {name: one, requirement: PA-02, statement: It holds., cells: {matrix: functional}}\n", "  []\n"}, []string{"scenario one is no longer required"}},
		"a scenario required": {[]string{"scenarios:", "scenarios:\n  - {name: two, requirement: PA-02, statement: It holds., cells: {matrix: functional}}"}, []string{"scenario two is required now"}},
		"a scenario changed":  {[]string{"It holds.", "It still holds."}, []string{"scenario one: statement is \"It still holds.\" instead of \"It holds.\""}},
		"the workload":        {[]string{"schemas: 10", "schemas: 5"}, []string{"the workload: schemas is 5 instead of 10"}},
		"a bound and more":    {[]string{"atMost: 600", "atMost: 300", "minSamples: 1", "minSamples: 2"}, []string{"target requests is stricter", "target requests: minSamples is 2 instead of 1"}},
		"a quota declared":    {[]string{"quotas: []", "quotas: [{resource: pods, limit: 24, perOperation: 1, retainedFor: 2m}]"}, []string{"the workload: quotas is new: ["}},
		"a part dropped":      {[]string{"  changes: {every: 10m, rounds: 9, resources: 10, costIntervals: 3}\n", ""}, []string{"the workload: changes is gone, it was {"}},
		"a part of a part":    {[]string{"rounds: 9", "rounds: 8"}, []string{"the workload: changes.rounds is 8 instead of 9"}},
		"a minor":             {[]string{`["1.37"]`, `["1.36", "1.37"]`}, []string{"the supported versions: kubernetes has 1.36 in addition"}},
		"a minor dropped":     {[]string{`["1.37"]`, `["1.36"]`}, []string{"the supported versions: kubernetes has 1.36 in addition", "the supported versions: kubernetes no longer has 1.37"}},
		"a database":          {[]string{`version: "17"`, `version: "18"`}, []string{"the supported versions: databases PostgreSQL.version is 18 instead of 17"}},
		"the summary":         {[]string{"for tests", "for more tests"}, []string{"the summary is worded differently"}},
		"the purpose":         {[]string{"purpose: development", "purpose: acceptance"}, []string{"the purpose is acceptance instead of development"}},
	}
	for name, test := range cases {
		changes := Diff(decode(t, base), decode(t, with(t, test.change...)))
		if len(changes) != len(test.want) {
			t.Errorf("%s: %v, want %q", name, changes, test.want)
			continue
		}
		for i, change := range changes {
			if !strings.HasPrefix(change.Sentence, test.want[i]) {
				t.Errorf("%s: %q, want %q", name, change.Sentence, test.want[i])
			}
		}
	}
}

func revised(t *testing.T, changes string, more ...string) *Profile {
	t.Helper()
	return decode(t, with(t, append([]string{"revision: 1", "revision: 2", "reason: First.}", "reason: First.}\n  - {number: 2, date: 2026-11-30, reason: Why., changes: [" + changes + "]}"}, more...)...))
}

func TestAChangeNeedsItsRevision(t *testing.T) {
	old := decode(t, base)
	cases := map[string]struct {
		profile *Profile
		want    string
	}{
		"should accept the same profile":                        {decode(t, base), ""},
		"should accept a change that its revision lists":        {revised(t, "requests", "atMost: 600", "atMost: 300"), ""},
		"should refuse a change without a revision":             {decode(t, with(t, "atMost: 600", "atMost: 300")), "is still revision 1: add revision 2"},
		"should refuse a changed summary without a revision":    {decode(t, with(t, "for tests", "for more tests")), "is still revision 1"},
		"should refuse a change that its revision hides":        {revised(t, "", "atMost: 600", "atMost: 300"), "requests changed and no new revision of profile small lists it"},
		"should refuse a revision that lists something else":    {revised(t, "other", "atMost: 600", "atMost: 300"), "requests changed"},
		"should refuse a revision that rewrites an earlier one": {revised(t, "requests", "reason: First.", "reason: Forged.", "atMost: 600", "atMost: 300"), "revision 1 of profile small was rewritten"},
	}
	for name, test := range cases {
		err := CheckRevision(old, test.profile)
		if (test.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestALaterRevisionJudgesEarlierEvidenceOnlyWhereNothingElseChanged(t *testing.T) {
	old := decode(t, base)
	if err := revised(t, "requests", "atMost: 600", "atMost: 300").Rejudges(old); err != nil {
		t.Errorf("a later revision of a target: %v", err)
	}
	for name, p := range map[string]*Profile{
		"an unrevised change": decode(t, with(t, "atMost: 600", "atMost: 700")),
		"another workload":    revised(t, "", "schemas: 10", "schemas: 5"),
		"another cluster":     revised(t, "", "controlPlanes: 3", "controlPlanes: 1"),
		"another purpose":     revised(t, "", "purpose: development", "purpose: acceptance"),
		"another profile":     revised(t, "", "name: small", "name: large"),
	} {
		if err := p.Rejudges(old); err == nil {
			t.Errorf("%s judges evidence of the first", name)
		}
	}
}

func TestTheDigestIsThatOfTheDeclarationAlone(t *testing.T) {
	first := decode(t, base).Digest()
	if got := decode(t, "# comment\n"+with(t, "duration: 90m", "duration: 1h30m")).Digest(); got != first {
		t.Error("a comment or another spelling changes the digest")
	}
	if got := decode(t, with(t, "atMost: 600", "atMost: 601")).Digest(); got == first {
		t.Error("another bound has the same digest")
	}
}

func TestBoundsHoldAtTheirLimit(t *testing.T) {
	limit := 25.0
	for _, test := range []struct {
		bound Bound
		value float64
		want  bool
	}{{Bound{AtMost: &limit}, 25, true}, {Bound{AtMost: &limit}, 25.01, false}, {Bound{AtLeast: &limit}, 25, true}, {Bound{AtLeast: &limit}, 24.99, false}, {Bound{}, 0, false}} {
		if got := test.bound.Holds(test.value); got != test.want {
			t.Errorf("%s holds for %v: %v", test.bound, test.value, got)
		}
	}
}

func TestPercentilesNeedAnObservationBeyondThem(t *testing.T) {
	for statistic, want := range map[Statistic]int{Max: 1, Sum: 1, P50: 2, P95: 20, P99: 100} {
		if got := statistic.LeastSamples(); got != want {
			t.Errorf("%s needs %d samples, want %d", statistic, got, want)
		}
	}
}

func TestTheTwelveRequirements(t *testing.T) {
	all := Requirements()
	if len(all) != 12 || all[0] != "PA-01" || all[11] != "PA-12" {
		t.Errorf("%v", all)
	}
	var never []Requirement
	for _, r := range all {
		if r.Title() == "" {
			t.Errorf("%s has no title", r)
		}
		if !r.Excludable() {
			never = append(never, r)
		}
	}
	if !slices.Equal(never, []Requirement{"PA-02", "PA-03", "PA-05"}) {
		t.Errorf("never excludable: %v", never)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(base))
	for _, name := range []string{"production", "development", "quickstart"} {
		data, err := os.ReadFile("../../profiles/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("apiVersion: qualification.ptah.run/v1\nkind: Profile\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode("f", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("a refusal of several lines: %q", err)
			}
			return
		}
		Lint(p)
		if len(Diff(p, p)) != 0 || CheckRevision(p, p) != nil {
			t.Fatal("a profile differs from itself")
		}
		again, err := Decode("f", p.Canonical())
		if err != nil || again.Digest() != p.Digest() {
			t.Fatalf("the canonical form reads back as another profile: %v", err)
		}
	})
}
