package lab

import "strings"

// problems are several errors in one line, the cause first. Nil errors in it say nothing.
type problems []error

// Error implements error.
func (p problems) Error() string {
	var lines []string
	for _, err := range p {
		if err != nil {
			lines = append(lines, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	return strings.Join(lines, "; ")
}

// Unwrap returns the errors.
func (p problems) Unwrap() []error {
	var found []error
	for _, err := range p {
		if err != nil {
			found = append(found, err)
		}
	}
	return found
}
