package catalogue

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
)

const checkedSuites = `apiVersion: qualification.ptah.run/v1
kind: Suites
suites:
  - name: data-plane
    summary: One.
    package: suites/dataplane
    phases:
      - {name: postgresql, timeout: 20m, where: {database: [postgresql]}, scenarios: [converge, drift], prepareThrough: converge}
      - {name: mysql, timeout: 20m, where: {database: [mysql]}, planned: No executor., scenarios: [converge, drift]}
  - name: lifecycle
    summary: Two.
    package: suites/lifecycle
    planned: Not written.
    prepares: [postgresql]
    phases:
      - {name: upgrade, timeout: 2h, scenarios: [upgrade]}
`

const checkedMatrix = `apiVersion: qualification.ptah.run/v1
kind: Matrix
name: functional
summary: For tests.
axes:
  - name: suite
    values: [{name: data-plane, minutes: 6}, {name: lifecycle, minutes: 20}]
  - name: kubernetes
    values:
      - {name: kubernetes-1.35, attributes: {minor: "1.35"}}
      - {name: kubernetes-1.36, attributes: {minor: "1.36"}}
      - {name: kubernetes-1.37, attributes: {minor: "1.37"}}
  - name: database
    values: [{name: postgresql, attributes: {engine: PostgreSQL, version: "17"}}, {name: mysql, attributes: {engine: MySQL, version: "8.4"}, planned: No server.}]
  - name: platform
    values: [{name: any, implied: true}, {name: amd64, attributes: {platform: linux/amd64}}]
depths:
  - {name: smoke, summary: One., needs: {cores: 2, memoryGiB: 8}, select: [{suite: [data-plane], kubernetes: [kubernetes-1.37], database: [postgresql], platform: [any]}]}
  - {name: pull-request, summary: Some., needs: {cores: 2, memoryGiB: 8}, select: [{suite: [data-plane], kubernetes: [kubernetes-1.37], platform: [any]}]}
  - {name: release, summary: All., needs: {cores: 4, memoryGiB: 16}, select: [{platform: [amd64]}]}
`

const checkedMachines = `apiVersion: qualification.ptah.run/v1
kind: Machines
machines:
  - {name: small, platform: linux/arm64, cores: 2, memoryGiB: 8, runsOn: small}
  - {name: large, platform: linux/amd64, cores: 4, memoryGiB: 16, runsOn: large, maxMinutes: 60}
`

// sources is a tree as text, so that a case can break any part of it.
type sources struct{ suites, kubernetes, machines, matrix string }

func sound() sources {
	return sources{suites: checkedSuites, kubernetes: kubernetes, machines: checkedMachines, matrix: checkedMatrix}
}

func (s sources) tree(t *testing.T) Tree {
	t.Helper()
	tree := Tree{
		KubeVersion: ">=1.35.0-0 <1.38.0-0",
		Modules:     map[string]string{"k8s.io/api": "v0.37.1", "k8s.io/apimachinery": "v0.37.1", "k8s.io/apiserver": "v0.37.1", "k8s.io/client-go": "v0.37.1", "k8s.io/utils": "v0.0.0-2026"},
		Nodes:       map[string]string{"1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.2"},
		Servers:     map[string][]string{"PostgreSQL": {"17"}},
		Reports:     map[string][]Report{"suites/dataplane": {{"TestConverge", "converge", "a_test.go:3"}, {"TestDrift", "drift", "a_test.go:9"}}},
		Profiles: []*profile.Profile{{
			Name: "quickstart", Support: profile.Support{Kubernetes: []string{"1.37"}}, Coverage: []profile.Coverage{{Matrix: "functional", Depth: "smoke"}},
			Scenarios: []profile.Scenario{{Name: "drift", Cells: profile.Selection{Matrix: "functional"}}},
		}},
	}
	var err error
	if tree.Suites, err = DecodeSuites("s.yaml", []byte(s.suites)); err != nil {
		t.Fatal(err)
	}
	if tree.Kubernetes, err = DecodeKubernetes("k.yaml", []byte(s.kubernetes)); err != nil {
		t.Fatal(err)
	}
	if tree.Machines, err = DecodeMachines("m.yaml", []byte(s.machines)); err != nil {
		t.Fatal(err)
	}
	m, err := matrix.Decode("x.yaml", []byte(s.matrix))
	if err != nil {
		t.Fatal(err)
	}
	tree.Matrices = []*matrix.Matrix{m}
	return tree
}

var checked = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func TestASoundTreeHasNoContradiction(t *testing.T) {
	if found := Check(sound().tree(t), checked); len(found) != 0 {
		t.Error(found)
	}
}

func replace(t *testing.T, text *string, old, new string) {
	t.Helper()
	if !strings.Contains(*text, old) {
		t.Fatalf("nothing to replace: %q", old)
	}
	*text = strings.Replace(*text, old, new, 1)
}

func TestEachContradictionIsFound(t *testing.T) {
	text := func(pick func(*sources) *string, old, new string) func(*testing.T, *sources) {
		return func(t *testing.T, s *sources) { replace(t, pick(s), old, new) }
	}
	suites := func(s *sources) *string { return &s.suites }
	matrices := func(s *sources) *string { return &s.matrix }
	machines := func(s *sources) *string { return &s.machines }
	cases := map[string]struct {
		text func(*testing.T, *sources)
		tree func(*Tree)
		want string
	}{
		"should find a scenario that its phase never reports": {tree: func(tree *Tree) { tree.Reports["suites/dataplane"] = tree.Reports["suites/dataplane"][:1] },
			want: "support/suites.yaml: suite data-plane: phase postgresql: it never reports the scenario drift, no test of suites/dataplane does; write TestDrift"},
		"should find a suite whose package is gone": {tree: func(tree *Tree) { tree.Reports = nil }, want: "it never reports the scenario converge"},
		"should find a scenario that two tests report": {tree: func(tree *Tree) {
			tree.Reports["suites/dataplane"] = append(tree.Reports["suites/dataplane"], Report{"TestDrift", "drift", "b_test.go:1"})
		}, want: "the scenario drift is reported twice, at a_test.go:9 and b_test.go:1"},
		"should find a test that the phase would not run": {tree: func(tree *Tree) { tree.Reports["suites/dataplane"][1].Test = "TestOther" },
			want: "is reported by TestOther (a_test.go:9) and the phase runs TestDrift"},
		"should find a test that no phase owns": {tree: func(tree *Tree) {
			tree.Reports["suites/dataplane"] = append(tree.Reports["suites/dataplane"], Report{"TestLost", "lost", "a_test.go:20"})
		}, want: "a_test.go:20: no phase of suite data-plane owns the scenario lost"},
		"should find a package that no suite owns": {tree: func(tree *Tree) { tree.Reports["suites/stray"] = []Report{{"TestLost", "lost", "b_test.go:2"}} },
			want: "b_test.go:2: the scenario lost is of the package suites/stray, which no suite"},
		"should find a plan that came true": {tree: func(tree *Tree) {
			tree.Reports["suites/lifecycle"] = []Report{{"TestUpgrade", "upgrade", "u_test.go:4"}}
		},
			want: "suite lifecycle is planned and reports upgrade already (u_test.go:4)"},
		"should find a suite that nothing runs": {text: text(matrices, "{name: lifecycle, minutes: 20}", "{name: data-plane-again}"), want: "no cell of any matrix runs the suite lifecycle"},
		"should find a suite that no depth runs": {text: text(matrices, "select: [{platform: [amd64]}]", "select: [{platform: [amd64], suite: [data-plane]}]"),
			want: "no cell of any matrix runs the suite lifecycle"},
		"should find a phase that nothing runs": {text: text(suites, "{name: upgrade, timeout: 2h, ", "{name: upgrade, timeout: 2h, where: {database: [oracle]}, "),
			want: "suite lifecycle: phase upgrade: nothing runs it"},
		"should find a cell without a phase": {text: text(suites, "{name: mysql, timeout: 20m, where: {database: [mysql]}", "{name: mysql, timeout: 20m, where: {database: [mysql], kubernetes: [kubernetes-1.35]}"),
			want: "cell data-plane.kubernetes-1.37.mysql runs none of the phases of suite data-plane"},
		"should find a suite that is not catalogued": {text: text(matrices, "{name: data-plane, minutes: 6}", "{name: data-plane, minutes: 6}, {name: other}"), want: "a cell runs the suite other, which support/suites.yaml does not have"},
		"should find cells that run no suite":        {text: func(_ *testing.T, s *sources) { s.matrix = strings.ReplaceAll(s.matrix, "suite", "area") }, want: "its cells run no suite"},
		"should find a matrix without a depth":       {text: text(matrices, "name: smoke", "name: tiny"), want: "matrices/functional.yaml: it has no depth smoke"},
		"should find a depth without a cell": {tree: func(tree *Tree) { tree.Matrices[0].Depths[0].Select[0]["suite"] = []string{"gone"} },
			want: "matrices/functional.yaml: depth smoke of matrix functional selects no cell"},
		"should find a depth without a machine":      {text: text(matrices, "needs: {cores: 2, memoryGiB: 8}, ", ""), want: "depth smoke does not say which machine its cells need"},
		"should find a cell too large for a machine": {text: text(matrices, "needs: {cores: 4, memoryGiB: 16}", "needs: {cores: 8, memoryGiB: 16}"), want: "needs a machine of linux/amd64 with 8 cores and 16 GiB for 6 minutes, and there is none: small is linux/arm64, large has 4 cores"},
		"should find a cell too long for a machine":  {text: text(machines, "maxMinutes: 60", "maxMinutes: 5"), want: "large ends a job after 5 minutes"},
		"should find a server that the lab lacks":    {tree: func(tree *Tree) { tree.Servers = nil }, want: "the lab has no PostgreSQL 17 server (support/images.yaml), which cell data-plane.kubernetes-1.37.postgresql needs"},
		"should find two matrices of one name":       {tree: func(tree *Tree) { tree.Matrices = append(tree.Matrices, tree.Matrices[0]) }, want: "two files declare the matrix functional"},
		"should find a minor outside of the window":  {text: text(matrices, `{name: kubernetes-1.35, attributes: {minor: "1.35"}}`, `{name: kubernetes-1.34, attributes: {minor: "1.34"}}`), want: "kubernetes-1.34 of axis kubernetes is of Kubernetes 1.34, outside of the window"},
		"should find a matrix that lacks a minor":    {text: text(matrices, `      - {name: kubernetes-1.35, attributes: {minor: "1.35"}}`+"\n", ""), want: "axis kubernetes has 1.36, 1.37, and the window is 1.35, 1.36, 1.37"},
		"should find a name that lies": {text: func(_ *testing.T, s *sources) { s.matrix = strings.ReplaceAll(s.matrix, "kubernetes-1.35", "oldest") },
			want: "oldest of axis kubernetes is of Kubernetes 1.35; name it after that"},
		"should find a scenario of a profile that nothing reports": {tree: func(tree *Tree) { tree.Profiles[0].Scenarios[0].Name = "upgrade" },
			want: "profiles/quickstart.yaml: scenario upgrade is demanded of cell data-plane.kubernetes-1.37.postgresql, and no phase of suite data-plane reports it there"},
		"should find a scenario of a profile that no cell can show": {tree: func(tree *Tree) {
			tree.Profiles[0].Scenarios[0].Cells.Where = map[string]string{"suite": "lifecycle"}
		}, want: "scenario drift is demanded of no cell"},
		"should find a profile of an old minor":      {tree: func(tree *Tree) { tree.Profiles[0].Support.Kubernetes = []string{"1.34"} }, want: "it speaks of Kubernetes 1.34, outside of the window"},
		"should find a profile silent on a minor":    {tree: func(tree *Tree) { tree.Profiles[0].Support.Kubernetes = []string{"1.36"} }, want: "profiles/quickstart.yaml: it covers cells of Kubernetes 1.37 and does not speak of it"},
		"should find a profile of a missing matrix":  {tree: func(tree *Tree) { tree.Profiles[0].Coverage[0].Matrix = "restore" }, want: "it covers the matrix restore, and there is no matrices/restore.yaml"},
		"should find a profile of a missing depth":   {tree: func(tree *Tree) { tree.Profiles[0].Coverage[0].Depth = "deep" }, want: "it covers more than there is: matrix functional has no depth \"deep\""},
		"should find a chart that admits more":       {tree: func(tree *Tree) { tree.KubeVersion = ">=1.35.0-0" }, want: `chart/ptah-operator/Chart.yaml: kubeVersion is ">=1.35.0-0", and the window`},
		"should find a chart of another window":      {tree: func(tree *Tree) { tree.KubeVersion = ">=1.34.0-0 <1.37.0-0" }, want: "write that, or move the window"},
		"should find a chart without a constraint":   {tree: func(tree *Tree) { tree.KubeVersion = "" }, want: `kubeVersion is ""`},
		"should find modules of two minors":          {tree: func(tree *Tree) { tree.Modules["k8s.io/client-go"] = "v0.36.1" }, want: "k8s.io/client-go is v0.36.1 and k8s.io/api is of 0.37"},
		"should find a module that is missing":       {tree: func(tree *Tree) { delete(tree.Modules, "k8s.io/apiserver") }, want: `it does not require a release of k8s.io/apiserver ("")`},
		"should find modules too far behind":         {tree: func(tree *Tree) { modules(tree, "v0.35.9") }, want: "is of Kubernetes 1.35, and the newest of the window is 1.37"},
		"should find modules newer than the window":  {tree: func(tree *Tree) { modules(tree, "v0.38.0") }, want: "is of Kubernetes 1.38, and the newest of the window is 1.37"},
		"should find a node image of another patch":  {tree: func(tree *Tree) { tree.Nodes["1.36"] = "v1.36.4" }, want: "the node image of Kubernetes 1.36 is of v1.36.4, and support/kubernetes.yaml tests v1.36.3"},
		"should find a minor without a node image":   {tree: func(tree *Tree) { delete(tree.Nodes, "1.36") }, want: "there is no node image of Kubernetes 1.36"},
		"should find a node image of an old minor":   {tree: func(tree *Tree) { tree.Nodes["1.34"] = "v1.34.1" }, want: "it has a node image of Kubernetes 1.34, outside of the window"},
		"should find a window that nobody looked at": {text: text(func(s *sources) *string { return &s.kubernetes }, "2026-11-29", "2026-10-26"), want: "support/kubernetes.yaml: lastVerified 2026-10-26 is 36 days ago"},
		"should find a window of the future":         {text: text(func(s *sources) *string { return &s.kubernetes }, "2026-11-29", "2026-12-02"), want: "lies in the future"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			broken := sound()
			if test.text != nil {
				test.text(t, &broken)
			}
			tree := broken.tree(t)
			if test.tree != nil {
				test.tree(&tree)
			}
			found := Check(tree, checked)
			if !slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.String(), test.want) }) {
				t.Errorf("%q is not among %q", test.want, found)
			}
			for _, finding := range found {
				if strings.Contains(finding.String(), "\n") || !strings.Contains(finding.Where, ".") {
					t.Errorf("it is no sentence with a place: %q", finding)
				}
			}
		})
	}
}

func modules(tree *Tree, version string) {
	for module := range maps.Clone(tree.Modules) {
		tree.Modules[module] = version
	}
}

func TestModulesMayBeOneMinorBehindTheWindow(t *testing.T) {
	tree := sound().tree(t)
	modules(&tree, "v0.36.9")
	if found := Check(tree, checked); len(found) != 0 {
		t.Error(found)
	}
}
