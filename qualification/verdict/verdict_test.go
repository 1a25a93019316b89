package verdict

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"
	"testing/quick"
	"time"
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

// garbage are verdicts that no constructor makes; a file may hold them.
func garbage() []Verdict {
	return []Verdict{
		{}, {State: "PASS"}, {State: "ok", Cause: Product}, {State: Pass, Cause: Product}, {State: Pass, Reasons: []Reason{{Code: ScenarioFailed}}},
		{State: Fail}, {State: Fail, Cause: "somebody"}, {State: Void}, {State: NotRun, Cause: "nobody"},
	}
}

// set is a random set of verdicts, also an empty one.
type set []Verdict

func (set) Generate(random *rand.Rand, size int) reflect.Value {
	s := make(set, random.Intn(size+1))
	for i := range s {
		s[i] = drawn(random)
	}
	return reflect.ValueOf(s)
}

// one is a random verdict.
type one struct{ Verdict }

func (one) Generate(random *rand.Rand, _ int) reflect.Value {
	return reflect.ValueOf(one{drawn(random)})
}

func drawn(random *rand.Rand) Verdict {
	if random.Intn(8) == 0 {
		return garbage()[random.Intn(len(garbage()))]
	}
	return all()[random.Intn(len(all()))]
}

// check tries a property on random input, another one in each run. The seed is printed, to try the same again.
func check(t *testing.T, property any) {
	t.Helper()
	seed := time.Now().UnixNano()
	if err := quick.Check(property, &quick.Config{MaxCount: 200, Rand: rand.New(rand.NewSource(seed))}); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

func with(s set, v Verdict) set { return append(append(set{}, s...), v) }

func TestAddingAVerdictNeverImprovesTheAggregate(t *testing.T) {
	check(t, func(s set, v one) bool {
		// The empty set is not run; a first verdict replaces that.
		return len(s) == 0 || !Worse(Aggregate(s...), Aggregate(with(s, v.Verdict)...))
	})
}

func TestAddingAFailureNeverImprovesEvenNothing(t *testing.T) {
	check(t, func(s set, which uint) bool {
		failures := []Cause{Harness, Infrastructure, Unknown, Product}
		after := Aggregate(with(s, New(Fail, failures[which%4], ScenarioFailed, "", "x"))...)
		return after.State == Fail && !Worse(Aggregate(s...), after)
	})
}

func TestAnythingBesideAPassIsNeverAPass(t *testing.T) {
	check(t, func(s set, v one) bool {
		return v.Satisfies() || !Aggregate(with(s, v.Verdict)...).Satisfies()
	})
}

func TestAnAggregateSatisfiesOnlyIfEveryVerdictDoes(t *testing.T) {
	check(t, func(s set) bool {
		every := len(s) > 0
		for _, v := range s {
			every = every && v.Satisfies()
		}
		return Aggregate(s...).Satisfies() == every
	})
}

func TestTheOrderOfVerdictsDoesNotMatter(t *testing.T) {
	check(t, func(s set, seed int64) bool {
		shuffled := append(set{}, s...)
		rand.New(rand.NewSource(seed)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		return reflect.DeepEqual(Aggregate(s...), Aggregate(shuffled...))
	})
}

func TestAggregatesOfAggregatesAreTheAggregateOfAll(t *testing.T) {
	check(t, func(a, b set) bool {
		if len(a) == 0 || len(b) == 0 {
			return true
		}
		return reflect.DeepEqual(Aggregate(Aggregate(a...), Aggregate(b...)), Aggregate(append(append(set{}, a...), b...)...))
	})
}

func TestTheSameVerdictTwiceCountsAsOnce(t *testing.T) {
	check(t, func(s set) bool {
		return reflect.DeepEqual(Aggregate(s...), Aggregate(append(append(set{}, s...), s...)...))
	})
}

func TestEveryReasonSurvives(t *testing.T) {
	check(t, func(s set) bool {
		kept := map[Reason]bool{}
		for _, reason := range Aggregate(s...).Reasons {
			kept[reason] = true
		}
		for _, v := range s {
			for _, reason := range v.Reasons {
				if !kept[reason] {
					return false
				}
			}
		}
		return true
	})
}

func TestWorseIsAnOrder(t *testing.T) {
	check(t, func(a, b, c one) bool {
		return !Worse(a.Verdict, a.Verdict) && (!Worse(a.Verdict, b.Verdict) || !Worse(b.Verdict, a.Verdict)) &&
			(!Worse(a.Verdict, b.Verdict) || !Worse(b.Verdict, c.Verdict) || Worse(a.Verdict, c.Verdict))
	})
}

// An aggregation that forgets a verdict, takes the best, or believes an empty set must be seen by the properties.
func TestThePropertiesSeeABrokenAggregation(t *testing.T) {
	pass, fail := Passed(), New(Fail, Product, ScenarioFailed, "", "x")
	for name, aggregate := range map[string]func(...Verdict) Verdict{
		"takes the last":          func(s ...Verdict) Verdict { return s[len(s)-1] },
		"takes the best":          func(...Verdict) Verdict { return pass },
		"counts a void as a pass": func(s ...Verdict) Verdict { return map[bool]Verdict{true: pass, false: fail}[s[0].State != Fail] },
	} {
		caught := !reflect.DeepEqual(aggregate(pass, fail), aggregate(fail, pass)) || aggregate(fail, pass).Satisfies() || aggregate(Verdict{State: Void}).Satisfies()
		if !caught {
			t.Errorf("an aggregation that %s is not seen", name)
		}
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
	for _, v := range garbage() {
		if v.Satisfies() || Aggregate(v).Satisfies() || Aggregate(Passed(), v).Satisfies() {
			t.Errorf("%+v satisfies", v)
		}
	}
}

func TestVoidNeverSatisfies(t *testing.T) {
	for _, cause := range []Cause{NoCause, Harness, Infrastructure, Unknown, Product, "other"} {
		if v := (Verdict{State: Void, Cause: cause}); v.Satisfies() || Aggregate(v, Passed()).Satisfies() || Aggregate(v).State != Void {
			t.Errorf("void by %q satisfies", cause)
		}
	}
}

func TestWhatContradictsItselfCountsAsVoid(t *testing.T) {
	for _, v := range []Verdict{{}, {State: "ok"}, {State: Pass, Cause: Product}, {State: Pass, Reasons: []Reason{{Code: ScenarioFailed}}}} {
		if got := Aggregate(Passed(), v); got.State != Void || got.Cause == NoCause {
			t.Errorf("%+v came to %s", v, got)
		}
		if !Worse(v, Passed()) || Worse(Passed(), v) {
			t.Errorf("%+v is not worse than a pass", v)
		}
	}
	if got := Aggregate(Verdict{State: Fail}); got.Cause != Unknown {
		t.Errorf("a failure without a cause came to %s", got)
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
