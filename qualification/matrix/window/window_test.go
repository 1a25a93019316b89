package window

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/repository"
)

// tree is a copy in memory of what this repository declares.
func tree(t *testing.T) map[string][]byte {
	t.Helper()
	root := os.DirFS("../../..")
	files := map[string][]byte{}
	for _, pattern := range []string{"support/*.yaml", "matrices/*.yaml", "profiles/*.yaml", "chart/ptah-operator/Chart.yaml", "go.mod", "qualification/suites/*/*_test.go"} {
		names, err := fs.Glob(root, pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			if files[name], err = fs.ReadFile(root, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files
}

func to(minor, patch string, day catalogue.Day) Move {
	version := minor + "." + patch
	return Move{To: catalogue.Release{Minor: minor, Version: version, Pins: map[string]string{"modules": "k8s.io/kubernetes@v" + version}}, Verified: day}
}

func propose(t *testing.T, files map[string][]byte, move Move) []Change {
	t.Helper()
	changes, err := Propose(files, move)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		files[change.Path] = change.After
	}
	return changes
}

func load(t *testing.T, files map[string][]byte) catalogue.Tree {
	t.Helper()
	memory := fstest.MapFS{}
	for name, data := range files {
		memory[name] = &fstest.MapFile{Data: data}
	}
	loaded, err := repository.Load(memory)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestTheWindowMovesThroughEveryFileAtOnce(t *testing.T) {
	files := tree(t)
	changes := propose(t, files, to("1.38", "0", "2026-12-20"))
	var paths []string
	for _, change := range changes {
		paths = append(paths, change.Path)
	}
	want := []string{"chart/ptah-operator/Chart.yaml", "matrices/capacity.yaml", "matrices/functional.yaml", "matrices/restore.yaml", "support/images.yaml", "support/kubernetes.yaml"}
	if !slices.Equal(paths, want) {
		t.Errorf("%v", paths)
	}
	moved := load(t, files)
	for _, finding := range catalogue.Check(moved, time.Date(2026, 12, 20, 12, 0, 0, 0, time.UTC)) {
		if !strings.HasPrefix(finding.Where, "profiles/") { // a profile moves by a revision, which a person writes
			t.Error(finding)
		}
	}
	if minors := moved.Kubernetes.Minors(); !slices.Equal(minors, []string{"1.36", "1.37", "1.38"}) || moved.Nodes["1.38"] != "v1.38.0" || moved.Nodes["1.35"] != "" {
		t.Errorf("%v, %v", minors, moved.Nodes)
	}
	images, err := catalog.Parse(files[catalogue.ImagesFile])
	if err != nil {
		t.Fatal(err)
	}
	node, err := images.Image(catalog.Node, "")
	if err != nil || node.Version != "1.38" || node.Tag != "ptah.local/kind-node:v1.38.0" || node.Modules.Programs["kubernetes"] != "kubernetes-1.38" || node.Modules.Programs["crictl"] != "crictl-1.37" {
		t.Errorf("the default node image: %+v, %v", node, err)
	}
	program, err := images.Program("kubernetes-1.38")
	if err != nil || program.Version != "v1.38.0" || program.Staging != "v0.38.0" || program.Sum != "" || !strings.Contains(program.LDFlags, "gitVersion=v1.38.0 ") || !strings.Contains(program.LDFlags, "gitMinor=38") {
		t.Errorf("%+v, %v", program, err)
	}
	before, err := images.Program("kubernetes-1.37")
	if err != nil || !slices.Equal(program.Packages, before.Packages) || before.Version != "v1.37.2" || before.Sum == "" {
		t.Errorf("%+v, %v", before, err)
	}
}

func TestWhatIsNotMovedStaysByteForByte(t *testing.T) {
	files := tree(t)
	for _, change := range propose(t, files, to("1.38", "0", "2026-12-20")) {
		after := strings.SplitAfter(string(change.After), "\n")
		lost := 0
		for _, line := range strings.SplitAfter(string(change.Before), "\n") {
			if i := slices.Index(after, line); i >= 0 {
				after = slices.Delete(after, i, i+1)
				continue
			}
			lost++
			if isComment(line) {
				t.Errorf("%s lost the comment %q", change.Path, line)
			}
			if !strings.Contains(line, "1.3") && !strings.Contains(line, "lastVerified") && !strings.Contains(line, "packages") && !strings.Contains(line, "staging: v0.35.4") && !strings.Contains(line, "gitMinor") {
				t.Errorf("%s lost %q", change.Path, line)
			}
		}
		if lost == 0 {
			t.Errorf("%s is a change that changes nothing", change.Path)
		}
	}
}

func TestTheWindowMovesAgainAndAgain(t *testing.T) {
	files := tree(t)
	for i, minor := range []string{"1.38", "1.39", "1.40", "1.41"} {
		move := to(minor, "1", catalogue.Day("2026-12-2"+string(rune('0'+i))))
		move.Sum = "h1:" + strings.Repeat("A", 43) + "="
		propose(t, files, move)
		images, err := catalog.Parse(files[catalogue.ImagesFile])
		if err != nil {
			t.Fatalf("%s: %v", minor, err)
		}
		program, err := images.Program("kubernetes-" + minor)
		if err != nil || len(program.Packages) != 7 || program.Sum != move.Sum {
			t.Fatalf("%s: %+v, %v", minor, program, err)
		}
	}
	moved := load(t, files)
	if minors := moved.Kubernetes.Minors(); !slices.Equal(minors, []string{"1.39", "1.40", "1.41"}) || moved.KubeVersion != ">=1.39.0-0 <1.42.0-0" {
		t.Errorf("%v, %s", minors, moved.KubeVersion)
	}
	for _, finding := range catalogue.Check(moved, time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)) {
		if strings.HasPrefix(finding.Where, "matrices/") || strings.HasPrefix(finding.Where, "support/") {
			t.Error(finding)
		}
	}
	if strings.Contains(string(files["matrices/capacity.yaml"]), "1.37") || !strings.Contains(string(files["matrices/capacity.yaml"]), "kubernetes-1.39-postgresql-17-arm64, kubernetes-1.41-mysql-8.4-arm64") {
		t.Error("the edges did not keep their places")
	}
}

func TestAMinorPinnedByImageOnlyIsPinnedThere(t *testing.T) {
	files := tree(t)
	digest := "sha256:" + strings.Repeat("a", 64)
	move := to("1.38", "0", "2026-12-20")
	move.To.Pins["registry"] = "kindest/node@" + digest
	propose(t, files, move)
	moved := load(t, files)
	if pins := moved.Kubernetes.Newest().Pins; !maps.Equal(pins, move.To.Pins) {
		t.Errorf("%v", pins)
	}
	images, err := catalog.Parse(files[catalogue.ImagesFile])
	if err != nil {
		t.Fatal(err)
	}
	if node, err := images.Image(catalog.Node, "1.38"); err != nil || node.Registry == nil || node.Registry.Digest != digest || node.Registry.Repository != "kindest/node" {
		t.Errorf("%+v, %v", node, err)
	}
	// The pin of one minor is never that of the next.
	propose(t, files, to("1.39", "0", "2026-12-21"))
	if images, err = catalog.Parse(files[catalogue.ImagesFile]); err != nil {
		t.Fatal(err)
	}
	if node, err := images.Image(catalog.Node, "1.39"); err != nil || node.Registry != nil {
		t.Errorf("%+v, %v", node, err)
	}
}

func TestMoveRefusals(t *testing.T) {
	replace := func(name, old, new string) func(*testing.T, map[string][]byte) {
		return func(t *testing.T, files map[string][]byte) {
			if !strings.Contains(string(files[name]), old) {
				t.Fatalf("nothing to replace in %s: %q", name, old)
			}
			files[name] = []byte(strings.Replace(string(files[name]), old, new, 1))
		}
	}
	next := to("1.38", "0", "2026-12-20")
	cases := map[string]struct {
		damage func(*testing.T, map[string][]byte)
		move   Move
		want   string
	}{
		"should refuse to leave a minor out":      {nil, to("1.39", "0", "2026-12-20"), "support/kubernetes.yaml: the window moves one minor at a time"},
		"should refuse a day before the last":     {nil, to("1.38", "0", "2026-01-01"), "the window was verified on"},
		"should refuse a pin of another version":  {nil, Move{To: catalogue.Release{Minor: "1.38", Version: "1.38.1", Pins: next.To.Pins}, Verified: "2026-12-20"}, "is no pin"},
		"should refuse without the chart":         {func(_ *testing.T, files map[string][]byte) { delete(files, catalogue.ChartFile) }, next, "Chart.yaml is missing, and the window moves everywhere or nowhere"},
		"should refuse without the images":        {func(_ *testing.T, files map[string][]byte) { delete(files, catalogue.ImagesFile) }, next, "images.yaml is missing"},
		"should refuse a chart of any version":    {replace(catalogue.ChartFile, "kubeVersion:", "kubernetes:"), next, "there is no kubeVersion in it"},
		"should refuse what is no YAML":           {replace("matrices/restore.yaml", "axes:", "axes: ]"), next, "matrices/restore.yaml is not YAML"},
		"should refuse a list":                    {func(_ *testing.T, files map[string][]byte) { files["matrices/x.yaml"] = []byte("- a\n") }, next, "matrices/x.yaml: it must be a mapping"},
		"should refuse carriage returns":          {replace("matrices/restore.yaml", "\n", "\r\n"), next, "end each line"},
		"should refuse a last line without end":   {func(_ *testing.T, files map[string][]byte) { files["matrices/x.yaml"] = []byte("a: b") }, next, "end each line"},
		"should refuse a minor in folded text":    {func(_ *testing.T, files map[string][]byte) { files["matrices/x.yaml"] = []byte("a: >-\n  on 1.37\n") }, next, `matrices/x.yaml:1: "on 1.37" stands on several lines`},
		"should refuse a window in flow style":    {func(_ *testing.T, files map[string][]byte) { files[catalogue.KubernetesFile] = []byte(flow) }, next, "it must be a list with one entry a line"},
		"should refuse a missing node image":      {replace(catalogue.ImagesFile, "  - role: node\n    version: \"1.35\"", "  - role: node\n    version: \"1.34\""), next, "there are 0 entries with role:node version:1.35"},
		"should refuse a missing program set":     {replace(catalogue.ImagesFile, "  - name: kubernetes-1.35\n", "  - name: kubernetes-1.34\n"), next, "there are 0 entries with name:kubernetes-1.35"},
		"should refuse to drop what others share": {anchorInOldest, next, "other entries refer to &kubernetes in the oldest one"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			files := tree(t)
			if test.damage != nil {
				test.damage(t, files)
			}
			changes, err := Propose(files, test.move)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v and %d changes, want %q", err, len(changes), test.want)
			}
		})
	}
}

const flow = `apiVersion: qualification.ptah.run/v1
kind: Kubernetes
policy: upstream-active-minors
windowSize: 3
lastVerified: 2026-11-29
releases: [{minor: "1.35", version: 1.35.4, pins: {modules: k8s.io/kubernetes@v1.35.4}}, {minor: "1.36", version: 1.36.3, pins: {modules: k8s.io/kubernetes@v1.36.3}}, {minor: "1.37", version: 1.37.2, pins: {modules: k8s.io/kubernetes@v1.37.2}}]
`

// anchorInOldest reverses the order, so that the oldest program set holds what the others refer to.
func anchorInOldest(t *testing.T, files map[string][]byte) {
	text := string(files[catalogue.ImagesFile])
	for _, swap := range [][2]string{{"kubernetes-1.37\n    module", "kubernetes-x\n    module"}, {"kubernetes-1.35\n    module", "kubernetes-1.37\n    module"}, {"kubernetes-x\n    module", "kubernetes-1.35\n    module"}} {
		if !strings.Contains(text, swap[0]) {
			t.Fatalf("nothing to replace: %q", swap[0])
		}
		text = strings.Replace(text, swap[0], swap[1], 1)
	}
	files[catalogue.ImagesFile] = []byte(text)
}

func TestOnlyWholeMinorsMove(t *testing.T) {
	places := map[string]string{"1.35": "1.36", "1.36": "1.37", "1.37": "1.38"}
	for from, want := range map[string]string{
		"1.35":                          "1.36",
		"kubernetes-1.35-postgresql-17": "kubernetes-1.36-postgresql-17",
		"1.35, 1.36 and 1.37.":          "1.36, 1.37 and 1.38.",
		"v1.35":                         "v1.36",
		"1.35.4 11.35 1.350 1.3 .1.35.": "1.35.4 11.35 1.350 1.3 .1.36.",
		"mysql-8.4":                     "mysql-8.4",
		"":                              "",
		"é1.37é":                        "é1.38é",
	} {
		if got := moveMinors(from, places); got != want {
			t.Errorf("%q became %q, want %q", from, got, want)
		}
	}
}

func FuzzProposeMovesAMatrixOrRefuses(f *testing.F) {
	root := os.DirFS("../../..")
	files := map[string][]byte{}
	for _, name := range []string{catalogue.KubernetesFile, catalogue.ImagesFile, catalogue.ChartFile} {
		data, err := fs.ReadFile(root, name)
		if err != nil {
			f.Fatal(err)
		}
		files[name] = data
	}
	f.Add([]byte("a: \"1.37\" # 1.37\nb: ['1.35', é1.36]\n"))
	f.Add([]byte("a: &x 1.37\nb: *x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		with := maps.Clone(files)
		with["matrices/fuzz.yaml"] = data
		changes, err := Propose(with, to("1.38", "0", "2026-12-20"))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("a refusal of several lines: %q", err)
			}
			return
		}
		for _, change := range changes {
			if _, err := parse(change.Path, change.After); err != nil {
				t.Fatalf("the change made it unreadable: %v\n%s", err, change.After)
			}
		}
	})
}
