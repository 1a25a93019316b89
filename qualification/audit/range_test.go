package audit

import "testing"

func TestTheRangeOfACounter(t *testing.T) {
	event := func(received, seen float64) Event { return Event{Received: at(received), Seen: at(seen)} }
	first, second := Reading{From: at(10), To: at(11)}, Reading{From: at(20), To: at(21)}
	cases := map[string]struct {
		event Event
		want  Range
	}{
		"should count a request between the readings":           {event(12, 13), Range{1, 1}},
		"should not count a request before them":                {event(8, 9), Range{0, 0}},
		"should not count a request after them":                 {event(22, 23), Range{0, 0}},
		"should not know a request under way at the first one":  {event(9, 12), Range{0, 1}},
		"should not know a request within the first one":        {event(10.2, 10.4), Range{0, 1}},
		"should not know a request under way at the second one": {event(19, 22), Range{0, 1}},
		"should not know a request within the second one":       {event(20.2, 20.4), Range{0, 1}},
		"should not know a watch over both":                     {event(1, 30), Range{0, 1}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Rise([]Event{test.event}, first, second); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
	for by, want := range map[float64]bool{1: false, 2: true, 3: true, 4: false, -1: false} {
		if (Range{2, 3}).Holds(by) != want {
			t.Errorf("a rise by %v in 2 to 3: %v", by, !want)
		}
	}
}

func TestPodsThatSentSomething(t *testing.T) {
	list := []Event{{Received: at(1), Pod: "a"}, {Received: at(2), Pod: "b"}, {Received: at(3), Pod: "a"}, {Received: at(9), Pod: "c"}}
	if found := Pods(list, Interval{at(1), at(3)}); len(found) != 2 || found["a"] != 2 || found["b"] != 1 {
		t.Errorf("%v", found)
	}
	if found := (Set{Events: list}).Where(ByPodName("a")); len(found) != 2 {
		t.Errorf("%v", found)
	}
}
