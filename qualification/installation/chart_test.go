package installation

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const chartDir = "../../chart/ptah-operator"

// render returns what the chart makes of some values beside those that it requires.
func render(t *testing.T, more map[string]any) (string, error) {
	t.Helper()
	chart, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	pinned := "sha256:" + strings.Repeat("a", 64)
	values := map[string]any{
		"image":     map[string]any{"repository": "registry.example/manager", "digest": pinned},
		"execution": map[string]any{"executorImage": "registry.example/executor@" + pinned, "runnerImage": "registry.example/runner@" + pinned, "ptahVersion": "1"},
	}
	maps.Copy(values, more)
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = common.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	merged, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: ReleaseName, Namespace: Namespace, IsInstall: true}, capabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, merged)
	if err != nil {
		return "", err
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text += files[name]
	}
	return text, nil
}

func TestASecondPersonIsAskedForByOneValue(t *testing.T) {
	const webhook, flag, always, forged = "name: mschema.operator.ptah.run", "--require-distinct-approver=", "Always asks nobody", "are written by the operator alone"
	for name, test := range map[string]struct {
		values           map[string]any
		present, missing []string
	}{
		"should ask nobody by itself": {nil, []string{flag + "false", forged}, []string{webhook, always}},
		"should ask where it is told": {map[string]any{"approvals": map[string]any{"requireDistinctApprover": true}}, []string{flag + "true", webhook, always}, []string{forged}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := render(t, test.values)
			if err != nil {
				t.Fatal(err)
			}
			for _, words := range test.present {
				if !strings.Contains(text, words) {
					t.Errorf("the chart does not render %q", words)
				}
			}
			for _, words := range test.missing {
				if strings.Contains(text, words) {
					t.Errorf("the chart renders %q", words)
				}
			}
		})
	}
	if _, err := render(t, map[string]any{"approvals": map[string]any{"requireDistinctApprover": "yes"}}); err == nil || !strings.Contains(err.Error(), "requireDistinctApprover") {
		t.Errorf("a word in place of true was answered with %v", err)
	}
}
