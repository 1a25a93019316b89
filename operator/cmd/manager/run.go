package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"ptah.run/ptah/operator/admission"
	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/operation"
	"ptah.run/ptah/operator/realm"
	"ptah.run/ptah/operator/receiver"
	"ptah.run/ptah/operator/schema"
	"ptah.run/ptah/operator/telemetry"
)

const (
	leaderLease = "ptah-operator.operator.ptah.run"

	// A waiting replica asks every retryPeriod; the leader gives its Lease back when it stops.
	leaseDuration = 30 * time.Second
	renewDeadline = 20 * time.Second
	retryPeriod   = 5 * time.Second

	// gracefulStop ends before the kubelet kills after 30 s.
	gracefulStop = 20 * time.Second

	workQPS, workBurst   = 50, 100
	leaseQPS, leaseBurst = 20, 40
)

func run(ctx context.Context, s settings, output io.Writer) error {
	logger := logr.FromSlogHandler(slog.NewJSONHandler(output, nil))
	ctrl.SetLogger(logger)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	return serve(ctx, config, s, logger)
}

func serve(ctx context.Context, config *rest.Config, s settings, logger logr.Logger) error {
	mgr, err := assemble(config, s, logger)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return nil
}

// assemble makes the manager with everything that it runs.
func assemble(config *rest.Config, s settings, logger logr.Logger) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, leases, err := newManager(config, scheme, s, logger)
	if err != nil {
		return nil, err
	}
	return mgr, register(mgr, leases, s)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), ptahv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	return scheme, nil
}

func identified(config *rest.Config, agent string, qps float32, burst int) *rest.Config {
	own := rest.CopyConfig(config)
	own.UserAgent, own.QPS, own.Burst = agent, qps, burst
	return own
}

// cacheOptions let the cache hold what is watched and nothing else: whoever reads another kind from it gets an error and
// not an informer. Of what is watched it keeps what somebody reads.
func cacheOptions() cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}: {
				Label:     labels.SelectorFromSet(labels.Set{ptahv1.LabelManagedBy: ptahv1.ManagedByValue}),
				Transform: operation.Cached,
			},
			&ptahv1.PtahSchema{}: {Transform: schema.Cached},
		},
	}
}

// newManager makes a manager whose cache holds only what is watched, and a second client for Leases, so that no burst
// of work can delay a renewal.
func newManager(config *rest.Config, scheme *runtime.Scheme, s settings, logger logr.Logger) (manager.Manager, *realm.Leases, error) {
	agent := "ptah-operator/" + s.controllerRevision
	leaseConfig := identified(config, agent+" lease", leaseQPS, leaseBurst)
	mgr, err := ctrl.NewManager(identified(config, agent, workQPS, workBurst), ctrl.Options{
		Scheme: scheme, Logger: logger,
		Cache:          cacheOptions(),
		LeaderElection: s.leaderElect, LeaderElectionID: leaderLease, LeaderElectionNamespace: s.coordinationNamespace,
		LeaderElectionConfig: leaseConfig, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: ptr.To(leaseDuration), RenewDeadline: ptr.To(renewDeadline), RetryPeriod: ptr.To(retryPeriod),
		GracefulShutdownTimeout: ptr.To(gracefulStop),
		Metrics:                 metricsserver.Options{BindAddress: s.metricsAddress},
		HealthProbeBindAddress:  s.probeAddress,
		WebhookServer:           webhook.NewServer(webhook.Options{Port: s.webhookPort, CertDir: s.certDir}),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("create manager: %w", err)
	}
	leaseClient, err := client.New(leaseConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("create Lease client: %w", err)
	}
	return mgr, &realm.Leases{
		Client: leaseClient, Namespace: s.coordinationNamespace, Clock: clock.RealClock{}, Random: rand.Reader,
	}, nil
}

func register(mgr manager.Manager, leases *realm.Leases, s settings) error {
	receive, err := receiver.New(receiver.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), TokenReviewer: receiver.NewTokenReviewer(mgr.GetClient()),
		CertDir: s.certDir, Port: s.resultsPort, Clock: clock.RealClock{}, Logger: mgr.GetLogger().WithName("receiver"),
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(receive); err != nil {
		return fmt.Errorf("add result receiver: %w", err)
	}
	if err := admission.Register(mgr, admission.Options{
		Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}, RequireDistinctApprover: s.requireDistinctApprover,
	}); err != nil {
		return err
	}
	reconciler := &schema.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Leases: leases, Results: results{reader: mgr.GetAPIReader()},
		Config: operationConfig(s), Clock: clock.RealClock{}, Random: rand.Reader,
		Events: mgr.GetEventRecorder("ptah-operator"), Metrics: telemetry.New(metrics.Registry),
	}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up controller: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add liveness check: %w", err)
	}
	if err := errors.Join(
		mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()),
		mgr.AddReadyzCheck("receiver", receive.Ready),
	); err != nil {
		return fmt.Errorf("add readiness checks: %w", err)
	}
	return nil
}

func operationConfig(s settings) operation.Config {
	return operation.Config{
		ExecutorImage: s.executorImage, RunnerImage: s.runnerImage, PtahVersion: s.ptahVersion, ResultsURL: s.resultsURL,
		TrustPEM: func() (string, error) {
			data, err := os.ReadFile(filepath.Join(s.certDir, "ca.crt"))
			return string(data), err
		},
		Manager: ptahv1.ManagerRecord{
			ControllerImage: s.controllerImage, ControllerRevision: s.controllerRevision, RunnerImage: s.runnerImage,
		},
	}
}

// results reads what the receiver stored, in the words of package operation.
type results struct{ reader client.Reader }

// Load reads the document of a publication. What is no valid result comes back in the words of package operation.
func (r results) Load(ctx context.Context, namespace, publication string) (operation.Receipt, error) {
	document, identity, err := receiver.LoadWithIdentity(ctx, r.reader, namespace, publication)
	var invalid *receiver.InvalidResultError
	switch {
	case errors.Is(err, receiver.ErrNoResult):
		return operation.Receipt{}, operation.ErrNoResult
	case errors.As(err, &invalid):
		return operation.Receipt{}, fmt.Errorf("%w: %w", operation.ErrInvalidResult, err)
	}
	return operation.Receipt{Document: document, PodUID: identity.PodUID}, err
}
