// Package journal is the form of the statement journal: what is written down before and after each statement of a plan
// that runs without a transaction, so that a stopped run can say how far it came.
package journal

// States of a statement.
const (
	Started = "started"
	Done    = "done"
	Failed  = "failed"
)

// Event is one line of the journal.
type Event struct {
	Statement int    `json:"statement"` // from 1
	Of        int    `json:"of"`
	State     string `json:"state"`
	SHA256    string `json:"sha256"`
}
