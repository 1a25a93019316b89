package rows

import (
	"errors"

	"ptah.run/ptah/operator/executor/failure"
)

// Discreet takes out of an error what a database said about a row: its text may repeat a value, even for a person at a
// terminal. The code of the answer stays.
func Discreet(err error) error {
	var e *failure.Error
	if !errors.As(err, &e) || e.SQLState == "" {
		return err
	}
	quiet := *e
	quiet.Detail = ""
	return &quiet
}
