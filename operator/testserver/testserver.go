// Package testserver gives tests a real API server with the kinds of this repository. It is for tests only: nothing
// that ships imports it.
//
// The programs come from KUBEBUILDER_ASSETS. Without that variable, tests that need a server skip, saying so; with
// PTAH_TEST_APISERVER=1 they fail instead, so that a machine meant to run them cannot pass by skipping.
package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Server starts at its first use and is shared by the tests of one package.
type Server struct {
	// CRDs is the folder of the CustomResourceDefinitions.
	CRDs string
	// Flags are extra flags of kube-apiserver, as name=value.
	Flags map[string]string

	once        sync.Once
	environment *envtest.Environment
	config      *rest.Config
	err         error
}

// Config returns how to reach the server as a cluster administrator.
func (s *Server) Config(t testing.TB) *rest.Config {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	required := os.Getenv("PTAH_TEST_APISERVER") == "1"
	if assets == "" && !required {
		t.Skip("KUBEBUILDER_ASSETS is not set: no API server to test against")
	}
	s.once.Do(func() { s.err = s.start(assets) })
	if s.err != nil {
		t.Fatalf("start the API server: %v", s.err)
	}
	return s.config
}

func (s *Server) start(assets string) error {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(assets, program)); err != nil {
			return fmt.Errorf("KUBEBUILDER_ASSETS=%q must name a folder with %s: %w", assets, program, err)
		}
	}
	s.environment = &envtest.Environment{
		CRDDirectoryPaths: []string{s.CRDs}, ErrorIfCRDPathMissing: true, BinaryAssetsDirectory: assets,
	}
	arguments := s.environment.ControlPlane.GetAPIServer().Configure()
	for name, value := range s.Flags {
		arguments.Set(name, value)
	}
	var err error
	s.config, err = s.environment.Start()
	return err
}

// Stop ends the server, if it was started. Call it from TestMain.
func (s *Server) Stop() error {
	if s.environment == nil {
		return nil
	}
	return s.environment.Stop()
}
