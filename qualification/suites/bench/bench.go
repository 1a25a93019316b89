// Package bench is what functional suites share: the lab that they were given, a client, databases and artifacts made
// as a user makes them, and readings taken from outside the product. It decides nothing; suites assert.
package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/qualification/evidence/ledger"
	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/tenant"
)

// Bench is one suite's view of a lab. It is made once, in TestMain.
type Bench struct {
	Lab    *lab.Description
	Config *rest.Config
	Client client.WithWatch
	Book   *ledger.Ledger
}

// Open reads the lab's description from the file named by PTAH_LAB and opens the ledger.
func Open() (*Bench, error) {
	log.SetLogger(logr.Discard()) // errors come back as errors
	path := os.Getenv(lab.EnvironmentVariable)
	if path == "" {
		return nil, fmt.Errorf("%s is not set: run the suite through \"ptah-qualify run\", or name the lab.json of a running lab", lab.EnvironmentVariable)
	}
	description, err := lab.Load(path)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", description.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the lab's kubeconfig %s: %w", description.Kubeconfig, err)
	}
	if config.UserAgent, err = agent(); err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	reader, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the lab's cluster: %w", err)
	}
	book, err := ledger.OpenFromEnvironment()
	if err != nil {
		return nil, err
	}
	return &Bench{Lab: description, Config: config, Client: reader, Book: book}, nil
}

// agent is how the requests of a suite are told from those of others in audit logs. A suite runs in its own folder.
func agent() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the suite's folder: %w", err)
	}
	return "ptah-qualify-suite/" + filepath.Base(folder), nil
}

// Scenario runs one scenario and writes its end, however the function ends. An error that the function reports with
// t.Fatal before any assertion failed is the harness's own, and is recorded so.
func (b *Bench) Scenario(t *testing.T, name string, run func(*Scenario)) {
	t.Helper()
	record := b.Book.Scenario(name)
	s := &Scenario{Scenario: record, T: t, Bench: b, Name: name}
	defer func() {
		if s.fixture != "" {
			record.FailBlaming("harness", s.fixture)
			return
		}
		if err := s.auditLogs(); err != nil {
			t.Errorf("read the logs of operation Pods: %v", err)
			record.FailBlaming("harness", err.Error())
			return
		}
		record.End()
	}()
	run(s)
}

// Scenario is one scenario under way.
type Scenario struct {
	*ledger.Scenario
	T     *testing.T
	Bench *Bench
	Name  string

	fixture     string
	namespaces  []string
	credentials []string // that no log may hold
}

// Check records an assertion and reports it to the test as well; the scenario goes on.
func (s *Scenario) Check(key string, held bool, format string, args ...any) bool {
	s.T.Helper()
	message := fmt.Sprintf(format, args...)
	if !s.Assert(key, held, message) {
		s.T.Errorf("%s: %s", key, message)
	}
	return held
}

// Need records an assertion that the rest of the scenario rests on: where it does not hold the scenario ends.
func (s *Scenario) Need(key string, err error) {
	s.T.Helper()
	if err != nil {
		s.Assert(key, false, err.Error())
		s.T.Fatalf("%s: %v", key, err)
	}
	s.Assert(key, true, "")
}

// Fixture ends the scenario, blaming the harness, where a fixture could not be made.
func (s *Scenario) Fixture(err error) {
	s.T.Helper()
	if err != nil {
		s.fixture = err.Error()
		s.T.Fatalf("fixture: %v", err)
	}
}

// Namespace makes a namespace for one scenario, restricted as production is, with the credentials that operation Pods
// need to pull images, and returns its name. It is removed when the test ends.
func (s *Scenario) Namespace(ctx context.Context) string {
	s.T.Helper()
	name := "qualify-" + randomSuffix()
	s.Fixture(s.Bench.createNamespace(ctx, name))
	s.namespaces = append(s.namespaces, name)
	s.T.Cleanup(func() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.Bench.Client.Delete(context.Background(), namespace); err != nil && !apierrors.IsNotFound(err) {
			s.T.Errorf("remove namespace %s: %v", name, err)
		}
	})
	return name
}

func (b *Bench) createNamespace(ctx context.Context, name string) error {
	if err := b.Client.Create(ctx, tenant.Namespace(name)); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	objects, err := tenant.Objects(b.Lab.Registry, name)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := b.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s/%s: %w", object, name, object.GetName(), err)
		}
	}
	return nil
}

// randomSuffix tells the objects of one run from those of another.
func randomSuffix() string {
	var bytes [4]byte
	rand.Read(bytes[:]) // never fails
	return hex.EncodeToString(bytes[:])
}
