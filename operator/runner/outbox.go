package runner

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/identity"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
	"ptah.run/ptah/operator/receiver/delivery"
)

// Bounds of the delivery. Repeating it is part of the protocol and cannot store anything twice: the receiver answers
// the same bytes with the same receipt.
const (
	deliveryAttempts = 4
	attemptTimeout   = 30 * time.Second
	deliveryTimeout  = 2 * time.Minute
	maxTrustBytes    = 64 << 10
)

// outbox talks to the receiver.
type outbox struct {
	client      *http.Client
	base        *url.URL
	publication string
	header      string // the encoded identity
	tokenFile   string
	pause       time.Duration
}

// newOutbox reads what delivery needs. It contacts nobody.
func newOutbox(lookup func(string) (string, bool), basic common, pause time.Duration) (*outbox, error) {
	need := &requirements{lookup: lookup}
	endpoint, trust, identityText := need.text(env.ResultEndpoint), need.text(env.ResultTrustPEM), need.text(env.ResultIdentity)
	tokenFile := need.path(env.ResultTokenFile)
	jobUID, podName, podUID := need.text(env.JobUID), need.text(env.PodName), need.text(env.PodUID)
	if need.problem != nil {
		return nil, errors.New(need.problem.Message)
	}
	base, err := url.Parse(endpoint)
	if err != nil || base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" || strings.Trim(base.Path, "/") != "" {
		return nil, fmt.Errorf("%s must be https://host[:port] without a path", env.ResultEndpoint)
	}
	claimed, err := delivery.DecodeJSON([]byte(identityText))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", env.ResultIdentity, err)
	}
	claimed.JobUID, claimed.PodName, claimed.PodUID = jobUID, podName, podUID
	if err := agree(claimed, basic); err != nil {
		return nil, err
	}
	header, err := delivery.Encode(claimed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", env.ResultIdentity, err)
	}
	roots := x509.NewCertPool()
	if len(trust) > maxTrustBytes || !roots.AppendCertsFromPEM([]byte(trust)) {
		return nil, fmt.Errorf("%s holds no PEM certificate, or more than %d bytes", env.ResultTrustPEM, maxTrustBytes)
	}
	return &outbox{
		client: &http.Client{
			Transport: &http.Transport{
				// No proxy: the receiver is a Service of the cluster, and its answers decide what runs.
				TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       attemptTimeout,
		},
		base:        &url.URL{Scheme: base.Scheme, Host: base.Host},
		publication: delivery.Publication(claimed),
		header:      header,
		tokenFile:   tokenFile,
		pause:       pause,
	}, nil
}

func agree(claimed identity.Identity, basic common) error {
	if basic.operation != claimed.Operation || basic.operationID != claimed.OperationID {
		return fmt.Errorf("%s is of another operation than %s and %s say", env.ResultIdentity, env.Operation, env.OperationID)
	}
	return nil
}

// plan fetches the bytes that the live claim names. The receiver compares token, resource, Job and Pod for it as it does
// for a result, so this is the preflight of the delivery, too.
func (o *outbox) plan(ctx context.Context) ([]byte, error) {
	return o.exchange(ctx, func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, o.url(delivery.PlansPath), nil)
	}, func(response *http.Response) error {
		if err := expectStatus(response, http.StatusOK); err != nil {
			return err
		}
		if response.ContentLength < 1 || response.ContentLength > report.MaxPlanBytes {
			return permanent{fmt.Errorf("the receiver served a plan of %d bytes", response.ContentLength)}
		}
		return nil
	})
}

// deliver sends a document until it is acknowledged, refused, or the bound is reached.
func (o *outbox) deliver(ctx context.Context, document []byte) (*delivery.Receipt, error) {
	digest := report.Digest(document)
	body, err := o.exchange(ctx, func(ctx context.Context) (*http.Request, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, o.url(delivery.ResultsPath), bytes.NewReader(document))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", result.MediaType)
		request.Header.Set(delivery.DigestHeader, digest)
		return request, nil
	}, func(response *http.Response) error {
		return expectStatus(response, http.StatusOK)
	})
	if err != nil {
		return nil, err
	}
	var receipt delivery.Receipt
	if err := json.Unmarshal(body, &receipt); err != nil {
		return nil, errors.New("the receipt is not JSON")
	}
	if receipt.Digest != digest || receipt.Publication != o.publication || receipt.Size != int64(len(document)) || receipt.UID == "" {
		return nil, errors.New("the receipt is for another result")
	}
	return &receipt, nil
}

func (o *outbox) url(path string) string { return o.base.JoinPath(path, o.publication).String() }

// permanent marks an answer that asking again cannot change.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// exchange sends a request, again on transport errors and on answers that say "later".
func (o *outbox) exchange(ctx context.Context, build func(context.Context) (*http.Request, error), accept func(*http.Response) error) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	var last error
	for attempt := range deliveryAttempts {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("no answer in time: %w", errors.Join(last, ctx.Err()))
			case <-time.After(o.pause):
			}
		}
		body, err := o.attempt(ctx, build, accept)
		if err == nil {
			return body, nil
		}
		if errors.As(err, new(permanent)) {
			return nil, err
		}
		last = err
	}
	return nil, fmt.Errorf("no usable answer in %d attempts: %w", deliveryAttempts, last)
}

func (o *outbox) attempt(ctx context.Context, build func(context.Context) (*http.Request, error), accept func(*http.Response) error) ([]byte, error) {
	request, err := build(ctx)
	if err != nil {
		return nil, permanent{err}
	}
	// The kubelet renews the token in place.
	token, err := readBounded(o.tokenFile, delivery.MaxTokenBytes)
	if err != nil {
		return nil, permanent{fmt.Errorf("the result token: %w", err)}
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set(delivery.IdentityHeader, o.header)
	response, err := o.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reach the receiver: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := accept(response); err != nil {
		return nil, err
	}
	limit := max(response.ContentLength, delivery.MaxReceiptBytes)
	body, err := io.ReadAll(io.LimitReader(response.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("read the receiver's answer: %w", err)
	}
	if response.ContentLength > 0 && int64(len(body)) != response.ContentLength {
		return nil, errors.New("the receiver's answer was cut short")
	}
	return body, nil
}

// expectStatus reads why a receiver said no.
func expectStatus(response *http.Response, want int) error {
	if response.StatusCode == want {
		return nil
	}
	var refusal struct {
		Error string `json:"error"`
	}
	// A refusal without words is one all the same.
	_ = json.NewDecoder(io.LimitReader(response.Body, delivery.MaxReceiptBytes)).Decode(&refusal)
	err := fmt.Errorf("the receiver answered %d: %s", response.StatusCode, refusal.Error)
	switch response.StatusCode {
	case http.StatusServiceUnavailable, http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return err
	}
	return permanent{err}
}
