package v1alpha1_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// node is what a CRD says of a value.
type node struct {
	Type                 string           `json:"type"`
	Format               string           `json:"format"`
	Pattern              string           `json:"pattern"`
	Enum                 []any            `json:"enum"`
	MinLength            *int             `json:"minLength"`
	MaxLength            *int             `json:"maxLength"`
	Minimum              *int64           `json:"minimum"`
	Maximum              *int64           `json:"maximum"`
	MinItems             *int             `json:"minItems"`
	Required             []string         `json:"required"`
	Properties           map[string]*node `json:"properties"`
	Items                *node            `json:"items"`
	AdditionalProperties *node            `json:"additionalProperties"`
}

// elsewhere are the parts that Kubernetes itself defines, and conditions.
var elsewhere = []string{"affinity", "tolerations", "resources", "nodeSelector", "conditions"}

// absent stands for a value that is not there.
type absent struct{}

// breach is one value that a CRD must refuse.
type breach struct {
	path  []string
	what  string
	value any
	// valid is a value for the same place, where the breach is none of a missing field.
	valid any
}

func crds(t *testing.T) map[string]*node {
	t.Helper()
	paths, err := filepath.Glob("../../../chart/ptah-operator/crds/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	found := map[string]*node{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Schema struct{ OpenAPIV3Schema *node }
				}
			}
		}{}
		if err := yaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}
		found[crd.Spec.Names.Kind] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return found
}

// valid is the smallest value that a node allows.
func (n *node) valid() any {
	switch {
	case len(n.Enum) > 0:
		return n.Enum[0]
	case n.Type == "object":
		value := map[string]any{}
		for _, name := range n.Required {
			value[name] = n.Properties[name].valid()
		}
		// What rules in CEL ask for beyond the limits: a selector has a name, and a target has one of two names.
		for _, name := range []string{"name", "coordinationKey"} {
			if named := n.Properties[name]; named != nil && (n.Properties["key"] != nil || n.Properties["realmRef"] != nil) {
				value[name] = named.valid()
			}
		}
		return value
	case n.Type == "array":
		value := []any{}
		for n.MinItems != nil && len(value) < *n.MinItems {
			value = append(value, n.Items.valid())
		}
		return value
	case n.Type == "integer" && n.Minimum != nil:
		return *n.Minimum
	case n.Type == "integer":
		return int64(1)
	case n.Type == "boolean":
		return false
	case n.Format == "date-time":
		return "2027-01-01T00:00:00Z"
	case n.Format == "byte":
		return "eA=="
	}
	for _, text := range []string{"1m", "a", digest("a"), "v1-" + strings.Repeat("0", 32), "e@" + digest("a"), "oci://registry.example/a"} {
		if n.Pattern == "" || regexp.MustCompile(n.Pattern).MatchString(text) {
			return text
		}
	}
	panic("no valid text for pattern " + n.Pattern)
}

// walk gives every breach of a node and of what is below it.
func (n *node) walk(path []string, visit func(breach)) {
	say := func(what string, value any) { visit(breach{slices.Clone(path), what, value, n.valid()}) }
	if n.MinLength != nil && *n.MinLength > 0 {
		say("shorter than the shortest", "")
	}
	if n.MaxLength != nil && n.Format != "byte" {
		say("longer than the longest", strings.Repeat("a", *n.MaxLength+1))
	}
	if n.Pattern != "" {
		at := slices.IndexFunc([]string{"!", " ", "é", "\x00", "a.b.c"}, func(s string) bool { return !regexp.MustCompile(n.Pattern).MatchString(s) })
		say("against the pattern", []string{"!", " ", "é", "\x00", "a.b.c"}[at])
	}
	if len(n.Enum) > 0 {
		say("outside the vocabulary", "Odd")
	}
	if n.Minimum != nil {
		say("below the smallest", *n.Minimum-1)
	}
	if n.Maximum != nil {
		say("above the largest", *n.Maximum+1)
	}
	if n.MinItems != nil {
		say("fewer than the fewest", []any{})
	}
	for _, name := range n.Required {
		visit(breach{append(slices.Clone(path), name), "missing", absent{}, n.Properties[name].valid()})
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		if !slices.Contains(elsewhere, name) {
			n.Properties[name].walk(append(slices.Clone(path), name), visit)
		}
	}
	if n.Items != nil {
		n.Items.walk(append(slices.Clone(path), "[]"), visit)
	}
	if n.AdditionalProperties != nil {
		n.AdditionalProperties.walk(append(slices.Clone(path), "{}"), visit)
	}
}

// place puts a value at a path, and makes the smallest parents where there are none.
func (n *node) place(current any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if current == nil {
		current = n.valid()
	}
	switch path[0] {
	case "[]":
		items := slices.Clone(current.([]any))
		if len(items) == 0 {
			items = []any{n.Items.valid()}
		}
		items[0] = n.Items.place(items[0], path[1:], value)
		return items
	case "{}":
		return map[string]any{"key": n.AdditionalProperties.place(n.AdditionalProperties.valid(), path[1:], value)}
	}
	fields := maps.Clone(current.(map[string]any))
	if len(path) == 1 && value == any(absent{}) {
		delete(fields, path[0])
		return fields
	}
	fields[path[0]] = n.Properties[path[0]].place(fields[path[0]], path[1:], value)
	return fields
}

// named is the last field of a path.
func named(path []string) string {
	last := ""
	for _, element := range path {
		if element != "[]" && element != "{}" {
			last = element
		}
	}
	return last
}

// Whatever the CRDs limit is tried on a real API server: one value beyond each limit, and the nearest valid value beside
// it. The list is taken from the CRDs, so that a new field cannot be forgotten. Rules in CEL have a table of their own.
func TestEveryLimitOfEveryFieldIsKept(t *testing.T) {
	c := serverClient(t)
	good := map[string]string{
		"PtahSchema": goodSchema, "PtahSchemaPlan": goodPlan, "PtahSchemaApproval": goodApproval, "PtahSchemaPlanChunk": goodChunk, "PtahResultRecord": goodRecord, "PtahRealm": goodRealm,
	}
	tried := 0
	for kind, root := range crds(t) {
		if good[kind] == "" {
			t.Errorf("kind %s has no good object", kind)
			continue
		}
		for _, part := range []string{"spec", "status"} {
			if root.Properties[part] == nil {
				continue
			}
			var stored *unstructured.Unstructured
			if part == "status" {
				stored = object(t, good[kind])
				stored.SetName("limits-of-" + strings.ToLower(kind))
				if err := c.Create(context.Background(), stored); err != nil {
					t.Fatal(err)
				}
			}
			root.Properties[part].walk([]string{part}, func(b breach) {
				tried++
				send := func(value any) error {
					o := object(t, good[kind])
					if stored != nil {
						o = stored.DeepCopy()
					} else if slices.Contains(b.path, "realmRef") {
						o = object(t, realmSchema)
					}
					o.Object = root.place(o.Object, b.path, value).(map[string]any)
					if stored != nil {
						return c.Status().Update(context.Background(), o, client.DryRunAll)
					}
					return c.Create(context.Background(), o, client.DryRunAll)
				}
				at := strings.Join(b.path, ".")
				if err := send(b.value); err == nil {
					t.Errorf("%s: %s, %s (%.40v), is accepted", kind, at, b.what, b.value)
				} else if !strings.Contains(err.Error(), named(b.path)) {
					t.Errorf("%s: %s, %s, is refused without its name: %.300v", kind, at, b.what, err)
				}
				if err := send(b.valid); err != nil {
					t.Errorf("%s: the control of %s, %.40v, is refused: %.300v", kind, at, b.valid, err)
				}
			})
		}
	}
	t.Logf("%d limits were tried", tried)
	if tried < 200 {
		t.Errorf("only %d limits were found in the CRDs", tried)
	}
}

func TestOnlyAFullListOfFindingsCanBeTruncated(t *testing.T) {
	c := serverClient(t)
	o := object(t, goodSchema)
	o.SetName("truncated")
	if err := c.Create(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for count, allowed := range map[int]bool{63: false, 64: true} {
		findings := make([]any, count)
		for i := range findings {
			findings[i] = map[string]any{"category": fmt.Sprint("category-", i), "count": int64(1), "severity": "safe"}
		}
		next := o.DeepCopy()
		set(t, next, "status.target", map[string]any{
			"engine": "PostgreSQL", "coordinationDigest": digest("a"), "driftFindings": findings, "driftFindingsTruncated": true,
		})
		err := c.Status().Update(context.Background(), next, client.DryRunAll)
		if (err == nil) != allowed || err != nil && !strings.Contains(err.Error(), "only a list of 64 findings can be truncated") {
			t.Errorf("a truncated list of %d findings: %v", count, err)
		}
	}
}
