// Package chart_test renders the chart as Helm does and reads the result as the API server would.
package chart_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const namespace = "ptah-system"

var (
	digestA = "sha256:" + strings.Repeat("a", 64)
	digestB = "sha256:" + strings.Repeat("b", 64)
)

// qualified are the least values that install.
func qualified() map[string]any {
	return map[string]any{
		"image": map[string]any{"repository": "registry.example:5000/ptah/manager", "digest": digestA},
		"execution": map[string]any{
			"executorImage": "registry.example:5000/ptah/executor@" + digestA,
			"runnerImage":   "registry.example:5000/ptah/runner@" + digestB,
			"ptahVersion":   "0.1.0",
		},
	}
}

// with sets a value by its path.
func with(values map[string]any, path string, value any) map[string]any {
	parts := strings.Split(path, ".")
	at := values
	for _, part := range parts[:len(parts)-1] {
		next, ok := at[part].(map[string]any)
		if !ok {
			next = map[string]any{}
		} else {
			next = maps.Clone(next)
		}
		at[part] = next
		at = next
	}
	at[parts[len(parts)-1]] = value
	return values
}

func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	loaded, err := loader.Load("ptah-operator")
	if err != nil {
		t.Fatalf("load the chart: %v", err)
	}
	return loaded
}

type rendering struct {
	release  string
	provider engine.ClientProvider
}

func (r rendering) files(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	if r.release == "" {
		r.release = namespace
	}
	loaded := load(t)
	capabilities := common.DefaultCapabilities.Copy()
	version, err := common.ParseKubeVersion("v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	capabilities.KubeVersion = *version
	options := common.ReleaseOptions{Name: "ptah-operator", Namespace: r.release, Revision: 1, IsInstall: true}
	top, err := util.ToRenderValues(loaded, values, options, capabilities)
	if err != nil {
		return nil, err
	}
	if r.provider != nil {
		return engine.RenderWithClientProvider(loaded, top, r.provider)
	}
	return engine.Render(loaded, top)
}

// objects decodes every document strictly: an unknown or repeated field is an error.
func (r rendering) objects(t *testing.T, values map[string]any) []client.Object {
	t.Helper()
	files, err := r.files(t, values)
	if err != nil {
		t.Fatalf("render: %v", err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var found []client.Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(files[name])))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if onlyComments(document) {
				continue
			}
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			found = append(found, object.(client.Object))
		}
	}
	return found
}

func onlyComments(document []byte) bool {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// one returns the only object of a type with a name.
func one[T client.Object](t *testing.T, objects []client.Object, name string) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if typed, ok := object.(T); ok && object.GetName() == name {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		var none T
		t.Fatalf("%d objects %T named %q, want 1", len(found), none, name)
	}
	return found[0]
}

func kinds(objects []client.Object) []string {
	var names []string
	for _, object := range objects {
		kind := object.GetObjectKind().GroupVersionKind().Kind
		names = append(names, fmt.Sprintf("%s %s", kind, object.GetName()))
	}
	slices.Sort(names)
	return names
}
