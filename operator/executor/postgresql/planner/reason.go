package planner

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// reason says in words that fit behind a colon, and without a name, why a change has no plan.
type reason struct{ text string }

func (r *reason) Error() string { return r.text }

func because(text string) error { return &reason{text} }

// reasonOf returns why the strategies failed, as the end of a sentence. The last one to fail covers most, so its reason
// counts most; what PostgreSQL itself said may hold names and is given by its SQLSTATE.
func reasonOf(failures []error) string {
	text := ""
	for _, err := range failures {
		var known *reason
		var incomplete *incompleteError
		var server *pgconn.PgError
		switch {
		case errors.As(err, &known):
			text = ": " + known.text
		case errors.As(err, &incomplete):
			text = ": what the known statements make of an object of type " + incomplete.left[0].Key.Type + " is not what is desired"
		case errors.As(err, &server):
			text = ": PostgreSQL refuses a statement that it needs with SQLSTATE " + server.Code
		}
	}
	return text
}
