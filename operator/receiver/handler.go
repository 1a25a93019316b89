package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

// Handler serves the receiver's paths, without TLS.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		refused := s.handle(ctx, w, r)
		status := http.StatusOK
		if refused != nil {
			status = refused.status
			refused.write(w)
		}
		s.logger.V(1).Info("Request", "method", r.Method, "path", r.URL.Path, "status", status)
		if refused != nil {
			s.logger.Info("Request refused", "method", r.Method, "status", status, "reason", refused.message)
		}
	})
}

// handle goes from what costs nothing to what costs a request to the API server.
func (s *Server) handle(ctx context.Context, w http.ResponseWriter, r *http.Request) *refusal {
	publication, results, refused := route(r)
	if refused != nil {
		return refused
	}
	given, refused := readCredentials(r.Header)
	if refused != nil {
		return refused
	}
	if delivery.Publication(given.claimed) != publication {
		return refuse(http.StatusForbidden, "the path does not belong to the claimed identity")
	}
	if !results && given.claimed.Operation != delivery.OperationApply {
		return refuse(http.StatusForbidden, "only an Apply is served a plan")
	}
	if refused := checkBody(r); refused != nil {
		return refused
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return refuse(http.StatusServiceUnavailable, "all slots are taken; try again")
	}
	account, refused := s.authenticate(ctx, given)
	if refused != nil {
		return refused
	}
	// Only the Pod itself comes this far, so that nobody else can hold its place.
	if !s.underway.begin(publication) {
		return refuse(http.StatusServiceUnavailable, "another request of this operation is being worked on; try again")
	}
	defer s.underway.end(publication)
	found, refused := s.authorize(ctx, given.claimed, account)
	if refused != nil {
		return refused
	}
	switch {
	case !results:
		return s.servePlan(ctx, w, given.claimed, found)
	case r.Method == http.MethodHead:
		// A preflight is neither a receipt nor a permission.
		w.WriteHeader(http.StatusNoContent)
		return nil
	default:
		return s.take(ctx, w, r, given.claimed, account, found)
	}
}

func route(r *http.Request) (publication string, results bool, refused *refusal) {
	publication, results = strings.CutPrefix(r.URL.Path, delivery.ResultsPath)
	allowed := []string{http.MethodHead, http.MethodPut}
	if !results {
		var plans bool
		publication, plans = strings.CutPrefix(r.URL.Path, delivery.PlansPath)
		if !plans {
			return "", false, refuse(http.StatusForbidden, "nothing is served here")
		}
		allowed = []string{http.MethodGet}
	}
	if !delivery.IsPublication(publication) || r.URL.RawQuery != "" {
		return "", false, refuse(http.StatusForbidden, "nothing is served here")
	}
	for _, method := range allowed {
		if r.Method == method {
			return publication, results, nil
		}
	}
	return "", false, refuse(http.StatusMethodNotAllowed, "only %s is answered here", strings.Join(allowed, " and "))
}

// checkBody looks at what the headers say of the body, before anything is read or asked.
func checkBody(r *http.Request) *refusal {
	if r.Method != http.MethodPut {
		if r.ContentLength != 0 {
			return refuse(http.StatusBadRequest, "%s carries no body", r.Method)
		}
		return nil
	}
	switch {
	case r.Header.Get("Content-Type") != result.MediaType:
		return refuse(http.StatusUnsupportedMediaType, "the content type is not %s", result.MediaType)
	case r.Header.Get("Content-Encoding") != "":
		return refuse(http.StatusUnsupportedMediaType, "a content encoding is not accepted")
	case r.ContentLength < 0:
		return refuse(http.StatusLengthRequired, "a Content-Length is required")
	case r.ContentLength == 0:
		return refuse(http.StatusBadRequest, "the body is empty")
	case r.ContentLength > result.MaxBytes:
		return refuse(http.StatusRequestEntityTooLarge, "the result is larger than %d bytes", result.MaxBytes)
	case len(r.Header.Values(delivery.DigestHeader)) != 1 || !report.IsDigest(r.Header.Get(delivery.DigestHeader)):
		return refuse(http.StatusBadRequest, "one %s header with a sha256 digest is required", delivery.DigestHeader)
	}
	return nil
}

func (s *Server) take(ctx context.Context, w http.ResponseWriter, r *http.Request, claimed identity.Identity, account string, found *authority) *refusal {
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			return refuse(http.StatusRequestTimeout, "the body did not arrive in time")
		}
		return refuse(http.StatusBadRequest, "the body is shorter than its Content-Length")
	}
	digest := report.Digest(body)
	if digest != r.Header.Get(delivery.DigestHeader) {
		return refuse(http.StatusBadRequest, "the body does not have the digest that %s says", delivery.DigestHeader)
	}
	document, err := result.Decode(body)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "the body is not a result: %v", err)
	}
	if document.Operation != claimed.Operation || document.OperationID != claimed.OperationID {
		return refuse(http.StatusUnprocessableEntity, "the result is of another operation than the claimed identity")
	}
	stored, refused := s.store(ctx, delivered{claimed: claimed, account: account, found: found, digest: digest, body: body})
	if refused != nil {
		return refused
	}
	receipt, err := json.Marshal(delivery.Receipt{
		Publication: delivery.Publication(claimed),
		Record:      stored.Name,
		UID:         string(stored.UID),
		Digest:      digest,
		Size:        int64(len(body)),
	})
	if err != nil {
		return refuse(http.StatusInternalServerError, "the receipt could not be written")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(receipt)))
	w.WriteHeader(http.StatusOK)
	// A receipt that does not arrive is asked for again, and the same bytes get the same receipt.
	_, _ = w.Write(receipt)
	return nil
}
