package gate_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/gate"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

func digestOf(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func declared(keys ...string) gate.Declared {
	d := gate.Declared{Profile: judge.ProfileIdentity{Name: "production", Revision: 3, Purpose: profile.Acceptance, Digest: digestOf("a")}}
	for _, key := range keys {
		d.Cells = append(d.Cells, gate.Demand{Cell: cellOf(key), Shown: []string{"scenario/converges", "target/requests"}})
	}
	return d
}

func cellOf(key string) matrix.Cell {
	return matrix.Cell{Matrix: "functional", Key: key, Axes: map[string]string{"suite": key, "kubernetes": "1.37"}, Attributes: map[string]string{"kubernetes.minor": "1.37"}, Minutes: 8}
}

// passing offers what the gate wants of a cell.
func passing(key string) gate.Offered {
	return gate.Offered{Source: key + ".cell.json", Cell: cellOf(key), Signed: true, Root: digestOf("e"), Cluster: "cluster-of-" + key,
		Profile: judge.ProfileIdentity{Name: "production", Revision: 3, Purpose: profile.Acceptance, Digest: digestOf("a")},
		Subject: map[string]string{"ptah/manager": digestOf("1"), "chart/ptah-operator": digestOf("4")},
		Shown:   []string{"scenario/converges", "target/requests", "target/more"}, Verdict: verdict.Passed()}
}

func all(keys ...string) []gate.Offered {
	var offers []gate.Offered
	for _, key := range keys {
		offers = append(offers, passing(key))
	}
	return offers
}

var three = []string{"alpha", "beta", "gamma"}

func TestTheExactDeclaredSetPasses(t *testing.T) {
	decision := gate.Decide(declared(three...), all(three...))
	if !decision.Passed() || len(decision.Cells) != 3 || decision.Subject["ptah/manager"] != digestOf("1") {
		t.Errorf("%+v", decision)
	}
	for _, cell := range decision.Cells {
		if !cell.Passed || cell.Source != cell.Cell+".cell.json" || cell.Verdict != "pass" {
			t.Errorf("%+v", cell)
		}
	}
}

// defects are the ways in which one offer can be worse than a passing one.
var defects = map[string]struct {
	worsen func(*gate.Offered)
	code   gate.Code
	says   string
}{
	"should refuse an unsigned cell": {func(o *gate.Offered) { o.Signed = false }, gate.Unsigned, "is not signed"},
	"should refuse a cell under an older profile": {func(o *gate.Offered) { o.Profile.Revision, o.Profile.Digest = 2, digestOf("b") }, gate.AnotherProfile,
		"under an older profile, production revision 2"},
	"should refuse a cell under another profile of the same revision": {func(o *gate.Offered) { o.Profile.Digest = digestOf("b") }, gate.AnotherProfile, "under another profile"},
	"should refuse a cell under a profile of another name":            {func(o *gate.Offered) { o.Profile.Name = "development" }, gate.AnotherProfile, "under another profile"},
	"should refuse a skipped cell":                                    {func(o *gate.Offered) { o.Root = "" }, gate.Skipped, "was skipped"},
	"should refuse a cell in which nothing was run": {func(o *gate.Offered) {
		o.Verdict = verdict.New(verdict.NotRun, verdict.Harness, verdict.ScenarioNotRun, "converges", "it was not run")
	}, gate.Skipped, "its verdict is not-run (harness), converges: it was not run"},
	"should refuse a failed cell": {func(o *gate.Offered) {
		o.Verdict = verdict.New(verdict.Fail, verdict.Product, verdict.BoundExceeded, "requests", "26 > 25")
	}, gate.NotPassed, "its verdict is fail (product), requests: 26 > 25"},
	"should refuse a void cell": {func(o *gate.Offered) {
		o.Verdict = verdict.New(verdict.Void, verdict.Harness, verdict.WitnessMissing, "x", "no witness")
	}, gate.NotPassed, "its verdict is void"},
	"should refuse an inconclusive cell": {func(o *gate.Offered) {
		o.Verdict = verdict.New(verdict.Inconclusive, verdict.Unknown, verdict.AuditMissing, "x", "no log")
	}, gate.NotPassed, "its verdict is inconclusive"},
	"should refuse a verdict that nobody gave":              {func(o *gate.Offered) { o.Verdict = verdict.Verdict{} }, gate.NotPassed, "did not pass"},
	"should refuse a passed cell without a scenario":        {func(o *gate.Offered) { o.Shown = []string{"target/requests"} }, gate.Incomplete, "does not show scenario/converges"},
	"should refuse a passed cell that shows nothing":        {func(o *gate.Offered) { o.Shown = nil }, gate.Incomplete, "does not show"},
	"should refuse a foreign cell":                          {func(o *gate.Offered) { o.Cell.Key = "omega" }, gate.Foreign, "cell omega of matrix functional is not in the declared set"},
	"should refuse a cell of another matrix":                {func(o *gate.Offered) { o.Cell.Matrix = "capacity" }, gate.Foreign, "of matrix capacity is not in the declared set"},
	"should refuse a cell of other axes":                    {func(o *gate.Offered) { o.Cell.Axes = map[string]string{"suite": "beta", "kubernetes": "1.36"} }, gate.Foreign, "under another declaration"},
	"should refuse a cell with another attribute":           {func(o *gate.Offered) { o.Cell.Attributes = map[string]string{"kubernetes.minor": "1.36"} }, gate.Foreign, "under another declaration"},
	"should refuse a cell about another image":              {func(o *gate.Offered) { o.Subject = with(o.Subject, "ptah/manager", digestOf("9")) }, gate.AnotherRelease, "about another release"},
	"should refuse a cell about a release with more in it":  {func(o *gate.Offered) { o.Subject = with(o.Subject, "ptah/other", digestOf("9")) }, gate.AnotherRelease, "ptah/other is"},
	"should refuse a cell about nothing":                    {func(o *gate.Offered) { o.Subject = nil }, gate.AnotherRelease, "another release"},
	"should refuse a cell whose bytes were altered":         {func(o *gate.Offered) { o.Problem = &gate.Problem{Code: gate.Altered, Message: "altered"} }, gate.Altered, "altered"},
	"should refuse a cell that is judged otherwise":         {func(o *gate.Offered) { o.Problem = &gate.Problem{Code: gate.EvidenceDiffer, Message: "differs"} }, gate.EvidenceDiffer, "differs"},
	"should refuse a cell whose signature is by a stranger": {func(o *gate.Offered) { o.Problem = &gate.Problem{Code: gate.Unsigned, Message: "stranger"} }, gate.Unsigned, "stranger"},
}

func with(m map[string]string, key, value string) map[string]string {
	changed := map[string]string{key: value}
	for name, known := range m {
		if name != key {
			changed[name] = known
		}
	}
	return changed
}

func TestEachDefectOfOneCellRefusesAndNamesIt(t *testing.T) {
	for name, defect := range defects {
		t.Run(name, func(t *testing.T) {
			offers := all(three...)
			defect.worsen(&offers[1])
			decision := gate.Decide(declared(three...), offers)
			if decision.Passed() {
				t.Fatal("the gate opens")
			}
			at := slices.IndexFunc(decision.Refusals, func(r gate.Refusal) bool { return r.Code == defect.code && strings.Contains(r.Message, defect.says) })
			if at < 0 {
				t.Fatalf("no refusal %s that says %q: %+v", defect.code, defect.says, decision.Refusals)
			}
			if refusal := decision.Refusals[at]; refusal.Cell != offers[1].Cell.Key || refusal.Source != offers[1].Source || strings.Contains(refusal.Message, "\n") {
				t.Errorf("the refusal names cell %q and %q", refusal.Cell, refusal.Source)
			}
			for _, cell := range decision.Cells {
				if cell.Passed != (cell.Cell != "beta") {
					t.Errorf("cell %s: passed %v", cell.Cell, cell.Passed)
				}
			}
		})
	}
}

func TestRefusalsOfTheSet(t *testing.T) {
	planned := declared(three...)
	planned.Cells[1].Cell.Planned = []string{"no MySQL suite yet"}
	demanded := declared(three...)
	demanded.Subject = map[string]string{"ptah/manager": digestOf("9")}
	nothing := declared(three...)
	nothing.Cells[1].Shown = nil
	twice := declared("alpha", "alpha")
	cases := map[string]struct {
		declared gate.Declared
		offers   []gate.Offered
		code     gate.Code
		cell     string
	}{
		"should refuse a missing cell":                                {declared(three...), all("alpha", "gamma"), gate.Missing, "beta"},
		"should refuse a planned cell that nobody ran":                {planned, all("alpha", "gamma"), gate.Missing, "beta"},
		"should refuse a cell that is there twice":                    {declared(three...), append(all(three...), passing("beta")), gate.Duplicated, "beta"},
		"should refuse a cell that passed and failed":                 {declared(three...), append(all(three...), failed("beta")), gate.Duplicated, "beta"},
		"should refuse a cell more than declared":                     {declared("alpha", "gamma"), all(three...), gate.Foreign, "beta"},
		"should refuse an empty declaration":                          {declared(), nil, gate.EmptySet, ""},
		"should refuse an empty declaration with cells":               {declared(), all("alpha"), gate.EmptySet, ""},
		"should refuse a declaration that has a cell twice":           {twice, all("alpha"), gate.Duplicated, "alpha"},
		"should refuse when nothing is offered":                       {declared("alpha"), nil, gate.Missing, "alpha"},
		"should refuse a release that is not the demanded one":        {demanded, all(three...), gate.AnotherRelease, "alpha"},
		"should refuse a cell of which the profile demands nothing":   {nothing, all(three...), gate.Incomplete, "beta"},
		"should refuse what could not be read beside a complete set":  {declared("alpha"), append(all("alpha"), gate.Offered{Source: "x", Problem: &gate.Problem{Code: gate.Unreadable, Message: "no cell"}}), gate.Unreadable, ""},
		"should refuse an unreadable second offer of a complete cell": {declared("alpha"), append(all("alpha"), gate.Offered{Source: "x", Cell: cellOf("alpha"), Problem: &gate.Problem{Code: gate.Altered, Message: "altered"}}), gate.Duplicated, "alpha"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			decision := gate.Decide(test.declared, test.offers)
			if decision.Passed() {
				t.Fatal("the gate opens")
			}
			if !slices.ContainsFunc(decision.Refusals, func(r gate.Refusal) bool { return r.Code == test.code && r.Cell == test.cell && r.Message != "" }) {
				t.Errorf("no refusal %s of cell %q: %+v", test.code, test.cell, decision.Refusals)
			}
		})
	}
	if (gate.Decision{}).Passed() {
		t.Error("a decision about nothing passes")
	}
}

func failed(key string) gate.Offered {
	o := passing(key)
	o.Verdict = verdict.New(verdict.Fail, verdict.Product, verdict.BoundExceeded, "requests", "26 > 25")
	return o
}

func TestWhatDoesNotMatterDoesNotRefuse(t *testing.T) {
	offers := all(three...)
	offers[0].Cell.Minutes = 99                             // an estimate
	offers[1].Cell.Planned = []string{"said before it ran"} // of an earlier declaration
	notRun := passing("beta")
	notRun.Root, notRun.Verdict = "", verdict.New(verdict.NotRun, verdict.Harness, verdict.CellMissing, "beta", "it ran on another machine")
	elsewhere := passing("delta")
	elsewhere.Root = ""
	if decision := gate.Decide(declared(three...), append(offers, notRun, elsewhere)); !decision.Passed() {
		t.Errorf("%+v", decision.Refusals)
	}
}

func TestAnAcceptanceDemandsMore(t *testing.T) {
	strict := func(change func(*gate.Declared)) gate.Declared {
		d := declared(three...)
		d.Acceptance = true
		change(&d)
		return d
	}
	unchanged := func(*gate.Declared) {}
	if decision := gate.Decide(strict(unchanged), all(three...)); !decision.Passed() {
		t.Fatalf("control: %+v", decision.Refusals)
	}
	unbound, shared := all(three...), all(three...)
	unbound[2].Unbound = []string{"a release manifest"}
	shared[2].Cluster = shared[0].Cluster
	cases := map[string]struct {
		declared gate.Declared
		offers   []gate.Offered
		says     string
	}{
		"should refuse a development profile":             {strict(func(d *gate.Declared) { d.Profile.Purpose = profile.Development }), all(three...), "is for development"},
		"should refuse a part of what the profile covers": {strict(func(d *gate.Declared) { d.Uncovered = []string{"9 cells of restore at depth release"} }), all(three...), "also covers 9 cells of restore"},
		"should refuse a cell that does not bind it all":  {strict(unchanged), unbound, "cell gamma is no part of an acceptance: it does not name a release manifest"},
		"should refuse two cells of one cluster":          {strict(unchanged), shared, "cells alpha and gamma ran in one cluster"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			decision := gate.Decide(test.declared, test.offers)
			if decision.Passed() || !slices.ContainsFunc(decision.Refusals, func(r gate.Refusal) bool {
				return r.Code == gate.NoAcceptance && strings.Contains(r.Message, test.says)
			}) {
				t.Errorf("%+v", decision.Refusals)
			}
			test.declared.Acceptance = false
			if decision := gate.Decide(test.declared, test.offers); !decision.Passed() {
				t.Errorf("control: without the demand it must pass: %+v", decision.Refusals)
			}
		})
	}
}

// world is a random declared set with random offers.
func world(random *rand.Rand) (gate.Declared, []gate.Offered) {
	keys := slices.Clone([]string{"alpha", "beta", "gamma", "delta", "epsilon"}[:random.Intn(6)])
	d, offers := declared(keys...), all(keys...)
	d.Subject = passing("alpha").Subject
	names := defectNames()
	for range random.Intn(4) {
		switch n := random.Intn(4); {
		case n == 0:
			offers = append(offers, passing([]string{"alpha", "zeta"}[random.Intn(2)]))
		case len(offers) == 0:
		case n == 1:
			defects[names[random.Intn(len(names))]].worsen(&offers[random.Intn(len(offers))])
		case n == 2:
			at := random.Intn(len(offers))
			offers = slices.Delete(slices.Clone(offers), at, at+1)
		}
	}
	random.Shuffle(len(offers), func(i, j int) { offers[i], offers[j] = offers[j], offers[i] })
	return d, offers
}

// defectNames are the defects that make any set worse. A release with more in it is only another release beside others.
func defectNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(defects)), func(name string) bool { return strings.Contains(name, "with more in it") })
}

// exact is what passing means, said another way: every declared cell is offered exactly once, nothing else is offered,
// and every offer is as good as a passing one.
func exact(d gate.Declared, offers []gate.Offered) bool {
	if len(d.Cells) == 0 || len(d.Cells) != len(offers) {
		return false
	}
	seen := map[string]bool{}
	for _, offer := range offers {
		if fmt.Sprintf("%#v", offer) != fmt.Sprintf("%#v", passing(offer.Cell.Key)) || seen[offer.Cell.Key] {
			return false
		}
		seen[offer.Cell.Key] = true
		if !slices.ContainsFunc(d.Cells, func(demand gate.Demand) bool { return demand.Cell.Key == offer.Cell.Key }) {
			return false
		}
	}
	return true
}

// TestPropertiesOfTheGate holds the gate to its rules on random sets: it opens for the exact set alone, whatever the
// order; what makes an offer worse never opens it; and taking an offer away opens it only where that offer was too many.
func TestPropertiesOfTheGate(t *testing.T) {
	random := rand.New(rand.NewSource(242))
	names := defectNames()
	passed := 0
	for i := range 4000 {
		d, offers := world(random)
		before := gate.Decide(d, offers).Passed()
		if before != surplusFree(d, offers) {
			t.Fatalf("world %d: passed %v, the set is exact %v: %+v", i, before, !before, offers)
		}
		if before {
			passed++
		}
		shuffled := slices.Clone(offers)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if gate.Decide(d, shuffled).Passed() != before {
			t.Fatalf("world %d: the order of the offers matters", i)
		}
		for at := range offers {
			worse := slices.Clone(offers)
			name := names[random.Intn(len(names))]
			defects[name].worsen(&worse[at])
			if !surplus(d, offers, at) && gate.Decide(d, worse).Passed() {
				t.Fatalf("world %d: %s, and the gate opens", i, strings.Replace(name, "should refuse ", "", 1))
			}
			fewer := slices.Delete(slices.Clone(offers), at, at+1)
			if !surplus(d, offers, at) && gate.Decide(d, fewer).Passed() {
				t.Fatalf("world %d: the offer of %s is taken away, and the gate opens", i, offers[at].Cell.Key)
			}
			if before && offers[at].Root != "" && (gate.Decide(d, fewer).Passed() || gate.Decide(d, append(slices.Clone(offers), offers[at])).Passed()) {
				t.Fatalf("world %d: a set that passes still passes with one cell less, or with one twice", i)
			}
		}
	}
	if passed < 200 {
		t.Errorf("only %d of the random sets pass, so that they show little", passed)
	}
}

// surplusFree is exact, after what says of itself that it was not run and is not declared.
func surplusFree(d gate.Declared, offers []gate.Offered) bool {
	kept := slices.DeleteFunc(slices.Clone(offers), func(o gate.Offered) bool { return o.Root == "" && o.Problem == nil })
	return exact(d, kept)
}

// surplus says whether the offer is foreign, unusable or one of several of its cell: then it is right that the gate may
// open without it.
func surplus(d gate.Declared, offers []gate.Offered, at int) bool {
	same := 0
	for _, other := range offers {
		if other.Cell.Key == offers[at].Cell.Key && other.Cell.Matrix == offers[at].Cell.Matrix && (other.Root != "" || other.Problem != nil) {
			same++
		}
	}
	known := slices.ContainsFunc(d.Cells, func(demand gate.Demand) bool {
		return demand.Cell.Key == offers[at].Cell.Key && demand.Cell.Matrix == offers[at].Cell.Matrix
	})
	return !known || same > 1 || (offers[at].Root == "" && offers[at].Problem == nil)
}

func TestDeclareTakesTheDemandsOfTheProfile(t *testing.T) {
	root := filepath.Join("..", "..")
	data, err := os.ReadFile(filepath.Join(root, "profiles", "quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Decode("quickstart", data)
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) (*matrix.Matrix, error) {
		data, err := os.ReadFile(filepath.Join(root, "matrices", name+".yaml"))
		if err != nil {
			return nil, err
		}
		return matrix.Decode(name, data)
	}
	covered, err := gate.Declare(p, nil, find)
	if err != nil {
		t.Fatal(err)
	}
	if len(covered.Cells) != 1 || len(covered.Cells[0].Shown) != len(p.Scenarios)+len(p.Targets) || len(covered.Uncovered) != 0 || covered.Profile.Digest != p.Digest() {
		t.Errorf("%+v", covered)
	}
	wide, err := gate.Declare(p, []profile.Coverage{{Matrix: "functional", Depth: "release"}}, find)
	if err != nil || len(wide.Cells) <= 1 {
		t.Errorf("%d cells, uncovered %v, %v", len(wide.Cells), wide.Uncovered, err)
	}
	p.Coverage = append(p.Coverage, profile.Coverage{Matrix: "functional", Depth: "release"})
	part, err := gate.Declare(p, []profile.Coverage{{Matrix: "functional", Depth: "smoke"}}, find)
	if err != nil || len(part.Uncovered) != 1 || !strings.Contains(part.Uncovered[0], "of functional at depth release") {
		t.Errorf("uncovered %v, %v", part.Uncovered, err)
	}
	for want, selection := range map[string]profile.Coverage{"no depth": {Matrix: "functional", Depth: "deep"}, "no such file": {Matrix: "other", Depth: "smoke"}} {
		if _, err := gate.Declare(p, []profile.Coverage{selection}, find); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	p.Coverage = []profile.Coverage{{Matrix: "other", Depth: "smoke"}}
	if _, err := gate.Declare(p, nil, find); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a profile that covers an unknown matrix: %v", err)
	}
}
