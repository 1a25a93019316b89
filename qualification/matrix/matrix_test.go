package matrix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const base = `apiVersion: qualification.ptah.run/v1
kind: Matrix
name: functional
summary: For tests.
axes:
  - name: suite
    values: [{name: data-plane, minutes: 6}, {name: lifecycle, minutes: 20}]
  - name: kubernetes
    values: [{name: kubernetes-1.36, attributes: {minor: "1.36"}}, {name: kubernetes-1.37, attributes: {minor: "1.37"}, minutes: 2}]
  - name: platform
    values: [{name: amd64}, {name: arm64}]
except:
  - {where: {suite: [lifecycle], platform: [arm64]}, reason: No machine is long enough.}
depths:
  - {name: smoke, summary: One., select: [{suite: [data-plane], kubernetes: [kubernetes-1.37], platform: [amd64]}]}
  - {name: pull-request, summary: Some., select: [{kubernetes: [kubernetes-1.37]}, {suite: [data-plane], platform: [arm64]}]}
  - {name: release, summary: All., select: [{}]}
`

func decode(t testing.TB, text string) *Matrix {
	t.Helper()
	m, err := Decode("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheMatricesOfTheRepositoryAreSound(t *testing.T) {
	paths, err := filepath.Glob("../../matrices/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Decode(path, data)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := strings.TrimSuffix(filepath.Base(path), ".yaml"); m.Name != want {
			t.Errorf("%s declares the matrix %s", path, m.Name)
		}
		for _, depth := range []string{"smoke", "pull-request", "release"} {
			if _, err := m.Select(depth); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCellsAreTheProductOfTheAxesLessTheExceptions(t *testing.T) {
	cells := decode(t, base).Cells()
	var keys []string
	for _, cell := range cells {
		keys = append(keys, cell.Key)
	}
	want := "data-plane.kubernetes-1.36.amd64 data-plane.kubernetes-1.36.arm64 data-plane.kubernetes-1.37.amd64 data-plane.kubernetes-1.37.arm64 lifecycle.kubernetes-1.36.amd64 lifecycle.kubernetes-1.37.amd64"
	if strings.Join(keys, " ") != want {
		t.Errorf("%v", keys)
	}
	last := cells[5]
	if last.Minutes != 22 || last.Attributes["kubernetes.minor"] != "1.37" || last.Suite() != "lifecycle" || last.Axes["platform"] != "amd64" {
		t.Errorf("%+v", last)
	}
	if first := cells[0]; first.Attributes["kubernetes.minor"] != "1.36" || first.Minutes != 6 {
		t.Errorf("cells share their attributes: %+v", first)
	}
}

func TestDepthsSelectCells(t *testing.T) {
	m := decode(t, base)
	for depth, want := range map[string]int{"smoke": 1, "pull-request": 4, "release": 6} {
		if cells, err := m.Select(depth); err != nil || len(cells) != want {
			t.Errorf("%s: %d cells, want %d (%v)", depth, len(cells), want, err)
		}
	}
	if _, err := m.Select("deep"); err == nil || !strings.Contains(err.Error(), "use one of: smoke, pull-request, release") {
		t.Errorf("%v", err)
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct{ old, new, want string }{
		"should refuse an unknown field":                 {"summary: For tests.", "summery: For tests.", "m.yaml:4: summery: it is no field, did you mean summary?"},
		"should refuse another kind":                     {"kind: Matrix", "kind: Profile", "kind: it must be Matrix"},
		"should refuse another version":                  {"ptah.run/v1", "ptah.run/v3", "apiVersion: it must be"},
		"should refuse a name with blanks":               {"name: functional", "name: All cells", "name: give the matrix a name"},
		"should refuse two axes of one name":             {"name: platform\n", "name: suite\n", "axes[2].name"},
		"should refuse an axis without values":           {"[{name: amd64}, {name: arm64}]", "[]", "axes[2].values"},
		"should refuse two values of one name":           {"{name: arm64}]", "{name: amd64}]", "axes[2].values[1].name"},
		"should refuse a value with a slash":             {"{name: amd64}", "{name: linux/amd64}", "axes[2].values[0].name"},
		"should refuse negative minutes":                 {"minutes: 6", "minutes: -6", "axes[0].values[0].minutes"},
		"should refuse an exception without a reason":    {"reason: No machine is long enough.", `reason: ""`, "except[0]"},
		"should refuse an exception of an unknown axis":  {"platform: [arm64]}, reason", "colour: [red]}, reason", "except[0].where.colour: the matrix has no such axis"},
		"should refuse an exception of an unknown value": {"platform: [arm64]}, reason", "platform: [riscv]}, reason", `the axis has no value "riscv", it has: amd64, arm64`},
		"should refuse a selector of an unknown value":   {"kubernetes: [kubernetes-1.37], platform", "kubernetes: [kubernetes-1.38], platform", "depths[0].select[0].kubernetes"},
		"should refuse a depth without a selector":       {"select: [{}]", "select: []", "depths[2].select"},
		"should refuse two depths of one name":           {"name: release", "name: smoke", "depths[2].name"},
		"should refuse a machine without cores":          {"summary: Some.", "summary: Some., needs: {memoryGiB: 8}", "depths[1].needs: say how many cores"},
		"should refuse a machine without memory":         {"summary: Some.", "summary: Some., needs: {cores: 2}", "depths[1].needs: say how many cores"},
		"should refuse a suite beside an axis of suites": {"summary: For tests.", "summary: For tests.\nsuite: capacity", "m.yaml: suite: name the suite either here"},
		"should refuse a suite with blanks":              {"summary: For tests.\naxes:\n  - name: suite", "summary: For tests.\nsuite: a b\naxes:\n  - name: sweet", "m.yaml: suite: name the suite"},
		"should refuse two values out of the key":        {"[{name: amd64}, {name: arm64}]", "[{name: amd64, implied: true}, {name: arm64, implied: true}]", "is that of two cells or empty"},
		"should refuse an attribute of two axes":         {"{name: amd64}", "{name: amd64, attributes: {minor: \"1.36\"}}", "axes[2].values[0].attributes.minor: the axis kubernetes gives it already"},
		"should refuse a depth that selects nothing":     {"suite: [data-plane], kubernetes: [kubernetes-1.37], platform: [amd64]", "suite: [lifecycle], platform: [arm64]", "selects no cell"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(base, test.old) {
				t.Fatalf("nothing to replace: %q", test.old)
			}
			_, err := Decode("m.yaml", []byte(strings.Replace(base, test.old, test.new, 1)))
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "m.yaml") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one sentence with %q", err, test.want)
			}
		})
	}
	head, _, _ := strings.Cut(base, "axes:")
	most, _, _ := strings.Cut(base, "depths:")
	for name, text := range map[string]string{"no axes": head + "axes: []\ndepths: []\n", "no depths": most + "depths: []\n"} {
		if _, err := Decode("m.yaml", []byte(text)); err == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
}

func TestACellSaysWhatItRunsWhereAndWhyItCannot(t *testing.T) {
	text := strings.Replace(base, "[{name: amd64}, {name: arm64}]", "[{name: amd64, implied: true}, {name: arm64, attributes: {platform: linux/arm64}, planned: No machine.}]", 1)
	text = strings.Replace(text, "{name: lifecycle, minutes: 20}", "{name: lifecycle, minutes: 20, planned: Not written.}", 1)
	cells := decode(t, strings.Replace(text, "except:\n  - {where: {suite: [lifecycle], platform: [arm64]}, reason: No machine is long enough.}\n", "", 1)).Cells()
	for i, want := range map[int]struct{ key, platform, planned string }{
		0: {"data-plane.kubernetes-1.36", "", ""},
		1: {"data-plane.kubernetes-1.36.arm64", "linux/arm64", "No machine."},
		7: {"lifecycle.kubernetes-1.37.arm64", "linux/arm64", "Not written.; No machine."},
	} {
		cell := cells[i]
		if cell.Key != want.key || cell.Platform() != want.platform || strings.Join(cell.Planned, "; ") != want.planned {
			t.Errorf("%d: %+v", i, cell)
		}
	}
	if cells[7].Minor() != "1.37" || len(cells[6].Planned) != 1 {
		t.Errorf("%+v, %+v", cells[6], cells[7])
	}
	one := decode(t, "apiVersion: qualification.ptah.run/v1\nkind: Matrix\nname: capacity\nsummary: S.\nsuite: capacity\naxes:\n  - {name: edge, values: [{name: a, attributes: {engine: MySQL, version: \"8.4\"}}]}\ndepths:\n  - {name: smoke, summary: S., select: [{}]}\n").Cells()[0]
	if engine, version := one.Database(); one.Suite() != "capacity" || engine != "MySQL" || version != "8.4" || one.Minor() != "" {
		t.Errorf("%+v", one)
	}
}

// Records that were signed before hold this digest.
func TestAMatrixWithoutWhatCameLaterKeepsItsDigest(t *testing.T) {
	if digest := decode(t, base).Digest(); digest != "sha256:b027e823c4884429a794423a6fcaa1654fd0d452e6a2ec10c3dd668cbafe1def" {
		t.Error(digest)
	}
}

func inputs() Inputs {
	return Inputs{Cell: Cell{Key: "a", Matrix: "functional"}, Profile: "p", Matrix: "m", Suite: "s", Images: map[string]string{"manager": "1", "runner": "2"}, Chart: "c",
		LabImages: map[string]string{"kind-node": "n"}, ImageSource: "modules", Platform: "linux/amd64", Native: true, ControlPlanes: 1, Harness: "h"}
}

func TestEveryInputChangesTheDigestAndIsNamed(t *testing.T) {
	changes := map[string]func(*Inputs){
		"the cell was":                      func(i *Inputs) { i.Cell.Key = "b" },
		"the declaration of the cell":       func(i *Inputs) { i.Cell.Minutes = 9 },
		"the profile was p and is x":        func(i *Inputs) { i.Profile = "x" },
		"the matrix was m and is x":         func(i *Inputs) { i.Matrix = "x" },
		"the suite was s and is x":          func(i *Inputs) { i.Suite = "x" },
		"the chart was c and is x":          func(i *Inputs) { i.Chart = "x" },
		"the image manager was 1":           func(i *Inputs) { i.Images = map[string]string{"manager": "9", "runner": "2"} },
		"the image runner was 2 and is abs": func(i *Inputs) { i.Images = map[string]string{"manager": "1"} },
		"the image extra was absent":        func(i *Inputs) { i.Images = map[string]string{"manager": "1", "runner": "2", "extra": "3"} },
		"the lab image kind-node was n":     func(i *Inputs) { i.LabImages = map[string]string{"kind-node": "x"} },
		"the image source was modules":      func(i *Inputs) { i.ImageSource = "registry" },
		"the platform was linux/amd64":      func(i *Inputs) { i.Platform = "linux/arm64" },
		"native execution was true":         func(i *Inputs) { i.Native = false },
		"the number of control planes":      func(i *Inputs) { i.ControlPlanes = 3 },
		"the number of workers":             func(i *Inputs) { i.Workers = 1 },
		"the harness was h":                 func(i *Inputs) { i.Harness = "h-dirty" },
	}
	same := inputs()
	if found := same.Differences(inputs()); len(found) != 0 || same.Digest() != inputs().Digest() {
		t.Errorf("the same inputs differ in %v", found)
	}
	for want, change := range changes {
		changed := inputs()
		change(&changed)
		found := inputs().Differences(changed)
		if len(found) != 1 || !strings.HasPrefix(found[0], want) || changed.Digest() == inputs().Digest() {
			t.Errorf("%s: %q", want, found)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(base))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode("f", data)
		if err != nil || len(data) > 4<<10 {
			return
		}
		for _, depth := range m.Depths {
			if _, err := m.Select(depth.Name); err != nil {
				t.Fatalf("a matrix that was accepted has an empty depth: %v", err)
			}
		}
	})
}
