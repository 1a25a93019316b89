package audit

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"
)

// Interval is a closed stretch of time.
type Interval struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Between returns the events that were received in the interval, both ends included. The events must be in order of
// arrival, as those of a Set are.
func Between(events []Event, interval Interval) []Event {
	first := sort.Search(len(events), func(i int) bool { return !events[i].Received.Before(interval.From) })
	beyond := sort.Search(len(events), func(i int) bool { return events[i].Received.After(interval.To) })
	if beyond < first {
		return nil
	}
	return events[first:beyond]
}

// Peak is the busiest position of a sliding window.
type Peak struct {
	Count int       `json:"count"`
	From  time.Time `json:"from"` // exclusive
	To    time.Time `json:"to"`   // inclusive
}

// SlidingPeak returns the largest number of events in any half-open window (t - length, t]. It is exact: moving a
// window back until it ends at the last event inside it never loses an event. The events must be in order of arrival.
func SlidingPeak(events []Event, length time.Duration) Peak {
	var peak Peak
	start := 0
	for end, event := range events {
		for !events[start].Received.After(event.Received.Add(-length)) {
			start++
		}
		if count := end - start + 1; count > peak.Count {
			peak = Peak{Count: count, From: event.Received.Add(-length), To: event.Received}
		}
	}
	return peak
}

// SegmentsWithout returns what is left of an interval when others are cut out of it, in order.
func SegmentsWithout(whole Interval, cut []Interval) []Interval {
	cut = slices.Clone(cut)
	slices.SortFunc(cut, func(a, b Interval) int { return a.From.Compare(b.From) })
	var left []Interval
	at := whole.From
	for _, hole := range cut {
		if hole.From.After(at) && at.Before(whole.To) {
			left = append(left, Interval{From: at, To: earlier(hole.From, whole.To)})
		}
		if hole.To.After(at) {
			at = hole.To
		}
	}
	if at.Before(whole.To) {
		left = append(left, Interval{From: at, To: whole.To})
	}
	return left
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Group is the number of events that share some words.
type Group struct {
	Words []string `json:"words"`
	Count int      `json:"count"`
}

// GroupBy counts events by what key returns for them, the largest group first.
func GroupBy(events []Event, key func(Event) []string) []Group {
	counts := map[string]*Group{}
	for _, event := range events {
		words := key(event)
		name := strings.Join(words, "\x00")
		if counts[name] == nil {
			counts[name] = &Group{Words: words}
		}
		counts[name].Count++
	}
	groups := make([]Group, 0, len(counts))
	for _, group := range counts {
		groups = append(groups, *group)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Words, b.Words))
	})
	return groups
}

// ByIdentity groups by user name.
func ByIdentity(event Event) []string { return []string{event.User} }

// ByRequest groups by verb, resource with group and subresource, and status code. A request for no resource is
// grouped by its path.
func ByRequest(event Event) []string {
	what := event.Resource
	if event.Group != "" {
		what += "." + event.Group
	}
	if event.Subresource != "" {
		what += "/" + event.Subresource
	}
	if event.Resource == "" {
		what, _, _ = strings.Cut(event.URI, "?")
	}
	return []string{event.Verb, what, codeText(event.Code)}
}

// ByPod groups by the Pod whose token was used.
func ByPod(event Event) []string { return []string{cmp.Or(event.Pod, "(no Pod)")} }

func codeText(code int) string {
	if code == 0 {
		return "-"
	}
	digits := []byte{byte('0' + code/100%10), byte('0' + code/10%10), byte('0' + code%10)}
	return string(digits)
}
