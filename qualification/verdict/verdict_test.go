package verdict

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"testing/quick"
)

// all returns every state with every cause that it can have.
func all() []Verdict {
	list := []Verdict{Passed()}
	for _, state := range []State{NotRun, Inconclusive, Void, Fail} {
		for _, cause := range []Cause{Harness, Infrastructure, Unknown, Product} {
			list = append(list, New(state, cause, ScenarioFailed, string(state), "because of %s", cause))
		}
	}
	return list
}

// set is a random set of verdicts, also an empty one.
type set []Verdict

func (set) Generate(random *rand.Rand, size int) reflect.Value {
	s := make(set, random.Intn(size+1))
	for i := range s {
		s[i] = all()[random.Intn(len(all()))]
	}
	return reflect.ValueOf(s)
}

func TestAddingAVerdictNeverImprovesTheAggregate(t *testing.T) {
	property := func(s set, which uint) bool {
		before := Aggregate(s...)
		after := Aggregate(append(append(set{}, s...), all()[which%uint(len(all()))])...)
		// The empty set is not run; a first verdict replaces that.
		return len(s) == 0 || !Worse(before, after)
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 400}); err != nil {
		t.Error(err)
	}
}

func TestAddingAFailureToAPassIsNeverAPass(t *testing.T) {
	for _, v := range all()[1:] {
		for size := range 5 {
			s := make(set, size)
			for i := range s {
				s[i] = Passed()
			}
			if Aggregate(append(s, v)...).Satisfies() {
				t.Errorf("%d passes and a %s are a pass", size, v)
			}
		}
	}
}

func TestTheOrderOfVerdictsDoesNotMatter(t *testing.T) {
	property := func(s set, seed int64) bool {
		shuffled := append(set{}, s...)
		rand.New(rand.NewSource(seed)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return reflect.DeepEqual(Aggregate(s...), Aggregate(shuffled...))
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 200}); err != nil {
		t.Error(err)
	}
}

func TestAggregatesOfAggregatesAreTheAggregateOfAll(t *testing.T) {
	property := func(a, b set) bool {
		if len(a) == 0 || len(b) == 0 {
			return true
		}
		return reflect.DeepEqual(Aggregate(Aggregate(a...), Aggregate(b...)), Aggregate(append(append(set{}, a...), b...)...))
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 200}); err != nil {
		t.Error(err)
	}
}

func TestAnEmptySetIsNeverAPass(t *testing.T) {
	if v := Aggregate(); v.State != NotRun || v.Satisfies() || v.Reasons[0].Code != EmptySet {
		t.Errorf("the aggregate of nothing is %+v", v)
	}
}

func TestOnlyPassSatisfies(t *testing.T) {
	for _, v := range all() {
		if v.Satisfies() != (v.State == Pass) {
			t.Errorf("%s satisfies: %v", v, v.Satisfies())
		}
	}
	if (Verdict{}).Satisfies() || (Verdict{State: "PASS"}).Satisfies() {
		t.Error("a state that is not pass satisfies")
	}
}

func TestAStateNobodyKnowsCountsAsVoid(t *testing.T) {
	if v := Aggregate(Passed(), Verdict{State: "ok"}); v.State != Void {
		t.Errorf("it came to %s", v)
	}
	if v := Aggregate(Verdict{}); v.State != Void {
		t.Errorf("the zero verdict came to %s", v)
	}
}

func TestTheGravestCauseOfTheWorstStateIsKept(t *testing.T) {
	fail := func(cause Cause) Verdict { return New(Fail, cause, ScenarioFailed, "", "x") }
	cases := []struct {
		verdicts []Verdict
		want     string
	}{
		{[]Verdict{fail(Harness), fail(Product)}, "fail (product)"},
		{[]Verdict{fail(Harness), fail(Unknown)}, "fail (unknown)"},
		{[]Verdict{fail(Harness), New(Void, Product, WitnessMissing, "", "x")}, "fail (harness)"},
		{[]Verdict{New(Inconclusive, Harness, NoSamples, "", "x"), New(NotRun, Product, ScenarioNotRun, "", "x")}, "inconclusive (harness)"},
		{[]Verdict{Passed(), Passed()}, "pass"},
	}
	for i, test := range cases {
		if got := Aggregate(test.verdicts...).String(); got != test.want {
			t.Errorf("case %d: %s, want %s", i, got, test.want)
		}
	}
}

func TestReasonsAreKeptOnceAndInOrder(t *testing.T) {
	b, a := New(Fail, Product, BoundExceeded, "b", "over"), New(Void, Harness, BoundExceeded, "a", "over")
	got := Aggregate(b, a, b)
	if fmt.Sprint(got.Reasons) != fmt.Sprint([]Reason{a.Reasons[0], b.Reasons[0]}) {
		t.Errorf("reasons are %v", got.Reasons)
	}
}
