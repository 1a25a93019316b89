package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Span is what the log of one server covers.
type Span struct {
	First  time.Time // when the first request was received
	Last   time.Time // the latest time stamped on anything
	Events int       // lines that were events, before stages of one request are joined
}

// Set is the distinct requests of several logs, in order of their arrival.
type Set struct {
	Events  []Event
	Servers map[string]Span
	Defects []Defect
}

// Merge joins logs into a set: the stages of one request become one event, and a request that two servers logged
// under one id counts once. An id that stands for two different requests is a defect, because counting it once
// would hide one.
func Merge(logs ...Log) Set {
	set := Set{Servers: map[string]Span{}}
	index := map[string]int{}
	for _, log := range logs {
		set.Defects = append(set.Defects, log.Defects...)
		span := set.Servers[log.Server]
		for _, event := range log.Events {
			span.extend(event)
			at, known := index[event.ID]
			if !known {
				index[event.ID] = len(set.Events)
				set.Events = append(set.Events, event)
				continue
			}
			set.join(&set.Events[at], event)
		}
		set.Servers[log.Server] = span
	}
	slices.SortStableFunc(set.Events, func(a, b Event) int {
		return cmp.Or(a.Received.Compare(b.Received), strings.Compare(a.ID, b.ID))
	})
	return set
}

func (s *Span) extend(event Event) {
	if s.Events == 0 || event.Received.Before(s.First) {
		s.First = event.Received
	}
	if event.Seen.After(s.Last) {
		s.Last = event.Seen
	}
	s.Events++
}

func (s *Set) join(known *Event, event Event) {
	same := known.Verb == event.Verb && known.URI == event.URI && known.User == event.User &&
		(known.Server != event.Server || known.Received.Equal(event.Received))
	if !same {
		s.Defects = append(s.Defects, Defect{Server: event.Server, Message: fmt.Sprintf("audit id %s stands for two different requests", event.ID)})
		return
	}
	if event.Received.Before(known.Received) {
		known.Received = event.Received
	}
	if event.Seen.After(known.Seen) {
		known.Seen = event.Seen
		known.Code = cmp.Or(event.Code, known.Code)
	}
}

// Check returns what keeps the set from being proven complete for the time from to to, on the given number of API
// servers. It is empty for a complete set.
func (s Set) Check(servers int, from, to time.Time) []Defect {
	defects := slices.Clone(s.Defects)
	if len(s.Servers) != servers {
		defects = append(defects, Defect{Message: fmt.Sprintf("there are audit logs of %d API servers, the cluster has %d", len(s.Servers), servers)})
	}
	for _, name := range s.ServerNames() {
		span := s.Servers[name]
		switch {
		case span.Events == 0:
			defects = append(defects, Defect{Server: name, Message: "its audit log holds no event"})
		case span.First.After(from):
			defects = append(defects, Defect{Server: name, Message: fmt.Sprintf("its audit log begins at %s, after the start of what is counted at %s", stamp(span.First), stamp(from))})
		case span.Last.Before(to):
			defects = append(defects, Defect{Server: name, Message: fmt.Sprintf("its audit log ends at %s, before the end of what is counted at %s", stamp(span.Last), stamp(to))})
		}
	}
	return defects
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// ServerNames returns the names of the servers in order.
func (s Set) ServerNames() []string {
	names := make([]string, 0, len(s.Servers))
	for name := range s.Servers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Filter says whether an event is counted.
type Filter func(Event) bool

// ByUser counts the requests of one identity.
func ByUser(user string) Filter { return func(event Event) bool { return event.User == user } }

// Lease matches requests for one Lease, such as that of the leader election.
func Lease(namespace, name string) Filter {
	return func(event Event) bool {
		return event.Group == "coordination.k8s.io" && event.Resource == "leases" && event.Namespace == namespace && event.Name == name
	}
}

// WithCode counts the responses of one status code.
func WithCode(code int) Filter { return func(event Event) bool { return event.Code == code } }

// Not turns a filter around.
func Not(filter Filter) Filter { return func(event Event) bool { return !filter(event) } }

// Where returns the events that every filter admits, in order of arrival.
func (s Set) Where(filters ...Filter) []Event {
	var found []Event
	for _, event := range s.Events {
		if !slices.ContainsFunc(filters, func(filter Filter) bool { return !filter(event) }) {
			found = append(found, event)
		}
	}
	return found
}
