// Package receiver takes the results of operation Pods and serves an Apply Pod the plan it is to run. Every manager
// replica runs one. It promises that an acknowledged result is stored whole and unchangeable, and that nothing is
// stored or served that the resource's own claim does not ask for, as the API server tells it at that moment. It
// believes no header: an identity is compared with the token, the resource, the Job and the Pod.
//
// Requests to the API server for one delivery of at most 256 KiB: five (token review, resource, Job, Pod, record).
// A larger delivery adds two for its intent, one per 512 KiB and three for the second authorization. A plan takes six
// (token review, resource, Job, Pod, plan, chunk), and the delivery after it on the same connection four, because a
// token that was reviewed is known for half a minute.
package receiver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Bounds of the service.
const (
	DefaultPort  = 9444
	DefaultSlots = 4
	MaxSlots     = 8

	maxHeaderBytes    = 16 << 10
	readHeaderTimeout = 5 * time.Second
	requestTimeout    = time.Minute
	shutdownTimeout   = 10 * time.Second
)

// Options of a Server.
type Options struct {
	// Client writes records.
	Client client.Client
	// Reader reads past every cache.
	Reader client.Reader
	// TokenReviewer authenticates Pods.
	TokenReviewer TokenReviewer
	// CertDir holds tls.crt and tls.key; a change on disk is served without a restart.
	CertDir string
	// Port to listen on; zero means DefaultPort.
	Port int
	// Clock; nil means the real one.
	Clock clock.PassiveClock
	// Logger gets one line per request, without content.
	Logger logr.Logger
	// Slots is how many requests are worked on at once, at most MaxSlots; zero means DefaultSlots.
	Slots int
}

// Server is a manager.Runnable that every replica runs.
type Server struct {
	client   client.Client
	reader   client.Reader
	reviewer TokenReviewer
	clock    clock.PassiveClock
	logger   logr.Logger
	certDir  string
	port     int
	slots    chan struct{}
	underway underway
	serving  atomic.Bool
	reviews  *reviewCache
}

// New checks the options. It opens nothing.
func New(options Options) (*Server, error) {
	switch {
	case options.Client == nil || options.Reader == nil || options.TokenReviewer == nil:
		return nil, errors.New("receiver: a client, an uncached reader and a token reviewer are required")
	case options.Slots < 0 || options.Slots > MaxSlots:
		return nil, fmt.Errorf("receiver: %d slots are not between 1 and %d", options.Slots, MaxSlots)
	case options.Port < 0 || options.Port > 65535:
		return nil, fmt.Errorf("receiver: %d is not a port", options.Port)
	}
	if options.Slots == 0 {
		options.Slots = DefaultSlots
	}
	if options.Port == 0 {
		options.Port = DefaultPort
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Server{
		client:   options.Client,
		reader:   options.Reader,
		reviewer: options.TokenReviewer,
		clock:    options.Clock,
		logger:   options.Logger,
		certDir:  options.CertDir,
		port:     options.Port,
		slots:    make(chan struct{}, options.Slots),
		reviews:  newReviewCache(options.Clock),
	}, nil
}

// NeedLeaderElection is false: a Pod may deliver to any replica.
func (s *Server) NeedLeaderElection() bool { return false }

// Ready is a readiness check: it fails until the server accepts connections, and again once it is asked to stop.
func (s *Server) Ready(*http.Request) error {
	if !s.serving.Load() {
		return errors.New("the result receiver does not serve")
	}
	return nil
}

// Start serves until ctx ends, then lets running requests finish for at most ten seconds.
func (s *Server) Start(ctx context.Context) error {
	watcher, err := certwatcher.New(filepath.Join(s.certDir, "tls.crt"), filepath.Join(s.certDir, "tls.key"))
	if err != nil {
		return fmt.Errorf("receiver: read the serving certificate in %s: %w", s.certDir, err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", ":"+strconv.Itoa(s.port))
	if err != nil {
		return fmt.Errorf("receiver: listen on port %d: %w", s.port, err)
	}
	return s.serve(ctx, listener, watcher)
}

func (s *Server) serve(ctx context.Context, listener net.Listener, watcher *certwatcher.CertWatcher) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      2 * requestTimeout,
		IdleTimeout:       requestTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(connectionLog{s.logger}, "", 0),
	}
	watch, stopWatch := context.WithCancel(ctx)
	defer stopWatch()
	failed := make(chan error, 2)
	go func() { failed <- watcher.Start(watch) }()
	go func() {
		failed <- server.Serve(tls.NewListener(listener, &tls.Config{
			MinVersion:     tls.VersionTLS13,
			NextProtos:     []string{"http/1.1"},
			GetCertificate: watcher.GetCertificate,
		}))
	}()
	s.serving.Store(true)
	defer s.serving.Store(false)
	s.logger.Info("Receiving results", "address", listener.Addr().String())
	select {
	case err := <-failed:
		if ctx.Err() == nil {
			closeErr := server.Close()
			return errors.Join(fmt.Errorf("receiver: serve: %w", err), closeErr)
		}
	case <-ctx.Done():
	}
	s.serving.Store(false)
	// The context is over; a request that is being stored is not.
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(finish); err != nil {
		return errors.Join(fmt.Errorf("receiver: stop: %w", err), server.Close())
	}
	return nil
}

// connectionLog writes what net/http says of broken connections where details go.
type connectionLog struct{ logger logr.Logger }

func (c connectionLog) Write(line []byte) (int, error) {
	c.logger.V(1).Info("Connection failed", "error", string(bytes.TrimSpace(line)))
	return len(line), nil
}
