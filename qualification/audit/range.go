package audit

// Range is the least and the most that a counter of requests can have risen by, by what the servers logged.
type Range struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

// Holds says whether a counter that rose by a number is explained.
func (r Range) Holds(by float64) bool { return float64(r.Least) <= by && by <= float64(r.Most) }

// Reading is when a counter was read: at some moment from From to To.
type Reading = Interval

// Rise returns how much the request counter of a client can have risen from one reading to a later one. A client counts
// a request when its response begins, which lies between its arrival at the server and the last that was logged of it.
// So a request that arrived after the first reading and ended before the second one was certainly counted between them,
// and one that was under way at a reading may have been counted on either side of it.
func Rise(events []Event, first, second Reading) Range {
	var r Range
	for _, event := range events {
		if event.Received.After(first.To) && event.Seen.Before(second.From) {
			r.Least++
		}
		if !event.Received.After(second.To) && !event.Seen.Before(first.From) {
			r.Most++
		}
	}
	return r
}

// ByPodName counts the requests that were sent with the token of one Pod.
func ByPodName(pod string) Filter { return func(event Event) bool { return event.Pod == pod } }

// Pods returns the Pods whose tokens were used within an interval, each with the number of its requests.
func Pods(events []Event, over Interval) map[string]int {
	counts := map[string]int{}
	for _, event := range Between(events, over) {
		counts[event.Pod]++
	}
	return counts
}
