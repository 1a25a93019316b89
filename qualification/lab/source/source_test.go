package source

import (
	"context"
	"errors"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"ptah.run/ptah/qualification/lab/cache"
	"ptah.run/ptah/qualification/lab/catalog"
)

// serve runs a registry in this process with one image in it.
func serve(t *testing.T) (repository string, image v1.Image, server *httptest.Server) {
	t.Helper()
	server = httptest.NewServer(registry.New(registry.Logger(log.New(os.Stderr, "", 0))))
	t.Cleanup(server.Close)
	image, err := random.Image(2000, 2)
	if err != nil {
		t.Fatal(err)
	}
	repository = strings.TrimPrefix(server.URL, "http://") + "/lab/node"
	reference, err := name.NewTag(repository + ":v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, image); err != nil {
		t.Fatal(err)
	}
	return repository, image, server
}

func pinned(repository, digest string) catalog.Image {
	return catalog.Image{Role: catalog.Node, Version: "1.37", Release: "v1.37.2", Tag: "local/node", Registry: &catalog.RegistryPin{Repository: repository, Digest: digest}}
}

func TestAPinnedImageComesFromTheRegistry(t *testing.T) {
	repository, image, _ := serve(t)
	digest, _ := image.Digest()
	got, err := (&Registry{}).Image(context.Background(), pinned(repository, digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	if gotDigest, err := got.Digest(); err != nil || gotDigest != digest {
		t.Errorf("got %s, %v, want %s", gotDigest, err, digest)
	}
}

func TestAnIndexGivesTheImageOfThisPlatform(t *testing.T) {
	repository, image, _ := serve(t)
	other, _ := random.Image(100, 1)
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}}},
		mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}})
	tag, _ := name.NewTag(repository + ":index")
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	digest, _ := index.Digest()
	got, err := (&Registry{}).Image(context.Background(), pinned(repository, digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := image.Digest()
	if gotDigest, err := got.Digest(); err != nil || gotDigest != want {
		t.Errorf("got %s, %v, want %s", gotDigest, err, want)
	}
}

func TestWhatARegistryCannotGiveIsRefused(t *testing.T) {
	repository, image, server := serve(t)
	digest, _ := image.Digest()
	unpinned := pinned(repository, digest.String())
	unpinned.Registry = nil
	var unavailable *UnavailableError
	if _, err := (&Registry{}).Image(context.Background(), unpinned); !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "no digest pin") {
		t.Errorf("without a pin: %v", err)
	}
	if _, err := (&Registry{}).Image(context.Background(), pinned(repository, "sha256:"+strings.Repeat("0", 64))); err == nil {
		t.Error("a digest that the registry lacks was accepted")
	}
	server.Close()
	if _, err := (&Registry{}).Image(context.Background(), pinned(repository, digest.String())); err == nil || !strings.Contains(err.Error(), repository) {
		t.Errorf("with the registry gone: %v", err)
	}
}

func modules(t *testing.T) *Modules {
	t.Helper()
	store, err := cache.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return NewModules(&catalog.Catalog{}, store)
}

func TestWhatCannotBeBuiltIsRefused(t *testing.T) {
	var unavailable *UnavailableError
	for name, entry := range map[string]catalog.Image{
		"no recipe in the catalogue": {Role: catalog.Node, Version: "1.37"},
		"no recipe in the program":   {Role: "mainframe", Version: "1", Modules: &catalog.Recipe{}},
	} {
		if _, err := modules(t).Image(context.Background(), entry); !errors.As(err, &unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	entry := catalog.Image{Role: catalog.Registry, Version: "3", Modules: &catalog.Recipe{}}
	if _, err := modules(t).Image(context.Background(), entry); err == nil || !strings.Contains(err.Error(), `part "registry"`) {
		t.Errorf("a part that the catalogue leaves out: %v", err)
	}
}

func TestComponentsAreToldApartByTheirImageName(t *testing.T) {
	names := []string{"registry.k8s.io/kube-apiserver:v1.37.2", "registry.k8s.io/coredns/coredns:v1.14.2", "registry.k8s.io/pause:3.10.1", "registry.k8s.io/etcd:3.7.0-0"}
	for program, want := range map[string]string{"pause": names[2], "coredns": names[1], "etcd": names[3]} {
		if got, err := component(names, program); err != nil || got != want {
			t.Errorf("%s is %s, %v", program, got, err)
		}
	}
	if _, err := component(names, "kube-proxy"); err == nil {
		t.Error("a component that is not in the list must be an error")
	}
	if _, err := componentImage("registry.k8s.io/cloud-controller:v1", inputs{}); err == nil {
		t.Error("a component without a program must be an error")
	}
}

func TestAModuleOfAnotherDigestIsRefused(t *testing.T) {
	pin := catalog.Pin{Module: "github.com/spf13/cobra", Version: "v1.10.2", Sum: "h1:" + strings.Repeat("A", 43) + "="}
	if _, err := download(context.Background(), pin); err == nil || !strings.Contains(err.Error(), "do not use it") {
		t.Errorf("got %v", err)
	}
	pin.Sum = ""
	if _, err := download(context.Background(), pin); err != nil {
		t.Errorf("without a pinned digest: %v", err)
	}
}

func TestProgramsTakeTheNamesTheCatalogueGivesThem(t *testing.T) {
	got := programNames(catalog.Program{Packages: []string{"example.test/cmd/one", "example.test/v3=two"}})
	if strings.Join(got, " ") != "one two" {
		t.Errorf("got %v", got)
	}
}

func TestTheLabsOwnProgramsBuild(t *testing.T) {
	m := modules(t)
	for _, program := range []string{"boundedruntime", "forwarder", "mysqlstart", "pause", "postgresqlstart"} {
		file, err := m.Programs.Own(context.Background(), program)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode()&0o111 == 0 || filepath.Base(file) != program {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if _, err := m.Programs.Own(context.Background(), "absent"); err == nil {
		t.Error("a program that is none must be an error")
	}
}

func TestCompressingKeepsTheFilesAndIsDoneOnce(t *testing.T) {
	store, err := cache.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(5000, 2)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Compressed(context.Background(), store, image)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := image.ConfigFile()
	config, err := got.ConfigFile()
	if err != nil || len(config.RootFS.DiffIDs) != 2 || config.RootFS.DiffIDs[0] != want.RootFS.DiffIDs[0] {
		t.Errorf("got %+v, %v", config, err)
	}
}
