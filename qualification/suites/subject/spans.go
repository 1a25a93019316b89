package subject

import (
	"time"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/suites/bench"
)

// Afterwork is how long after the write that ends a claim its last requests, such as the release of the Lease, are
// counted to it.
const Afterwork = time.Second

// Span is the time of one operation as a watch saw it.
type Span struct{ From, To time.Time }

// Operations pairs the start and the end of each claim of a type in a list of transitions.
func Operations(seen []bench.Transition, kind v1alpha1.OperationType) []Span {
	var spans []Span
	var open string
	for _, state := range seen {
		claim := state.Status.ActiveOperation
		if open != "" && (claim == nil || claim.ID != open) {
			spans[len(spans)-1].To = state.At.Add(Afterwork)
			open = ""
		}
		if claim != nil && claim.Type == kind && claim.ID != open {
			spans = append(spans, Span{From: claim.StartedAt.Time})
			open = claim.ID
		}
	}
	if open != "" {
		spans = spans[:len(spans)-1]
	}
	return spans
}
