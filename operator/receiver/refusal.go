package receiver

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// refusal ends a request. Its message is one sentence that says nothing about content.
type refusal struct {
	status  int
	message string
}

func refuse(status int, format string, arguments ...any) *refusal {
	return &refusal{status: status, message: fmt.Sprintf(format, arguments...)}
}

// write answers with the refusal and closes the connection, so that a body is neither read nor waited for.
func (r *refusal) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Connection", "close")
	header.Set("Content-Type", "application/json")
	switch r.status {
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", "1")
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(r.status)
	// A peer that is gone needs no answer.
	_ = json.NewEncoder(w).Encode(map[string]string{"error": r.message})
}
