package catalogue

import (
	"slices"
	"strings"
	"testing"
)

func TestAPlanHasEveryCellAndSaysWhyOneIsNotRun(t *testing.T) {
	tree := sound().tree(t)
	plan, err := Plan(tree.Matrices[0], "release", tree.Suites, tree.Machines)
	if err != nil || len(plan) != 12 {
		t.Fatalf("%d cells, %v", len(plan), err)
	}
	want := map[string]string{
		"data-plane.kubernetes-1.35.postgresql.amd64": "",
		"data-plane.kubernetes-1.35.mysql.amd64":      "No server.; phase mysql of suite data-plane is planned: No executor.",
		"lifecycle.kubernetes-1.37.postgresql.amd64":  "suite lifecycle is planned: Not written.",
		"lifecycle.kubernetes-1.37.mysql.amd64":       "No server.; suite lifecycle is planned: Not written.",
	}
	for _, cell := range plan {
		reasons, known := want[cell.Key]
		if !known {
			continue
		}
		delete(want, cell.Key)
		if strings.Join(cell.NotRun, "; ") != reasons || cell.Runnable() != (reasons == "") {
			t.Errorf("%s: %q", cell.Key, cell.NotRun)
		}
		if cell.Runnable() && (cell.Machine.Name != "large" || !slices.Equal(cell.Phases, []string{"postgresql"})) {
			t.Errorf("%+v", cell)
		}
		if !cell.Runnable() && (cell.Machine.Name != "" || len(cell.Phases) > 0) {
			t.Errorf("a cell that is not run has a machine: %+v", cell)
		}
	}
	if len(want) > 0 {
		t.Errorf("left out: %v", want)
	}
	if _, err := Plan(tree.Matrices[0], "deep", tree.Suites, tree.Machines); err == nil {
		t.Error("a depth that does not exist has a plan")
	}
}

func TestACellWithoutAMachineOrASuiteIsNotRun(t *testing.T) {
	tree := sound().tree(t)
	tree.Machines.Machines = tree.Machines.Machines[:1]
	plan, err := Plan(tree.Matrices[0], "release", tree.Suites, tree.Machines)
	if err != nil || plan[0].Runnable() || !strings.Contains(plan[0].NotRun[0], "needs a machine of linux/amd64") {
		t.Errorf("%+v, %v", plan[0], err)
	}
	if plan, err = Plan(tree.Matrices[0], "smoke", tree.Suites, tree.Machines); err != nil || !plan[0].Runnable() || plan[0].Machine.Name != "small" {
		t.Errorf("a cell that leaves its platform open takes any machine: %+v, %v", plan[0], err)
	}
	tree.Suites.Suites = tree.Suites.Suites[1:]
	if reasons := tree.Suites.NotRun(plan[0].Cell); len(reasons) != 1 || !strings.Contains(reasons[0], `no suite "data-plane"`) {
		t.Errorf("%q", reasons)
	}
}

func TestACellOfWhichAPartIsPlannedRunsTheRestAndNamesTheGap(t *testing.T) {
	broken := sound()
	replace(t, &broken.suites, "where: {database: [mysql]}, planned", "planned")
	replace(t, &broken.suites, "scenarios: [converge, drift]}\n  - name: lifecycle", "scenarios: [limits]}\n  - name: lifecycle")
	tree := broken.tree(t)
	plan, err := Plan(tree.Matrices[0], "smoke", tree.Suites, tree.Machines)
	if err != nil || !plan[0].Runnable() || !slices.Equal(plan[0].Phases, []string{"postgresql"}) || len(plan[0].Gaps) != 1 || !strings.Contains(plan[0].Gaps[0], "phase mysql of suite data-plane is planned: No executor.") {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestASuiteWithoutAPhaseForTheCellIsNotRun(t *testing.T) {
	broken := sound()
	replace(t, &broken.suites, "where: {database: [postgresql]}", "where: {database: [oracle]}")
	tree := broken.tree(t)
	plan, err := Plan(tree.Matrices[0], "smoke", tree.Suites, tree.Machines)
	if err != nil || !slices.Equal(plan[0].NotRun, []string{"suite data-plane has no phase for this cell"}) {
		t.Errorf("%+v, %v", plan, err)
	}
}

func TestPreparationEndsWhereThePhaseLendsItAndRunsWhereThePhaseRuns(t *testing.T) {
	broken := sound()
	replace(t, &broken.suites, "    planned: Not written.\n", "")
	tree := broken.tree(t)
	plan, err := Plan(tree.Matrices[0], "release", tree.Suites, tree.Machines)
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range plan {
		borrowed, err := tree.Suites.Preparation(cell.Cell)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case cell.Suite() == "data-plane" || cell.Axes["database"] == "mysql":
			if len(borrowed) > 0 {
				t.Errorf("%s prepares %+v", cell.Key, borrowed)
			}
		case len(borrowed) != 1 || borrowed[0].Package != "suites/dataplane" || !slices.Equal(borrowed[0].Phase.Scenarios, []string{"converge"}) || !slices.Equal(cell.Prepare, []string{"postgresql"}):
			t.Errorf("%s prepares %+v", cell.Key, borrowed)
		}
	}
	if whole := tree.Suites.Suites[0].Phases[0].Scenarios; len(whole) != 2 {
		t.Errorf("lending cut the phase itself: %q", whole)
	}
	tree.Suites.Suites[1].Prepares = []string{"lost"}
	if _, err := tree.Suites.Preparation(plan[6].Cell); err == nil || !strings.Contains(err.Error(), "borrows the phase lost, which no suite lends") {
		t.Errorf("%v", err)
	}
}

func TestMachineRefusals(t *testing.T) {
	cases := map[string]struct{ old, new, want string }{
		"should refuse an unknown field":         {"cores: 2", "cpus: 2", "machines[0].cpus: it is no field"},
		"should refuse another kind":             {"kind: Machines", "kind: Machine", "it must have apiVersion"},
		"should refuse two machines of one name": {"name: large", "name: small", "machines[1].name: give each machine a name of its own"},
		"should refuse a platform without a cpu": {"linux/arm64", "linux", "machines[0].platform: it must be a platform"},
		"should refuse a machine without cores":  {"cores: 2, ", "", "machines[0]: say how many cores"},
		"should refuse a machine without memory": {", memoryGiB: 8", "", "machines[0]: say how many cores"},
		"should refuse a negative limit":         {"maxMinutes: 60", "maxMinutes: -1", "machines[1]: say how many cores"},
		"should refuse a label with an escape":   {"runsOn: small", `runsOn: "a: b"`, `machines[0].runsOn: "a: b" is no label`},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			refused(t, checkedMachines, test.old, test.new, test.want, func(data []byte) error { _, err := DecodeMachines("s.yaml", data); return err })
		})
	}
}

func TestPlannedPreparationCannotBeBorrowedByWhatRuns(t *testing.T) {
	text := strings.Replace(checkedSuites, "    planned: Not written.\n", "", 1)
	text = strings.Replace(text, "prepares: [postgresql]", "prepares: [postgresql, mysql]", 1)
	text = strings.Replace(text, "scenarios: [converge, drift]}\n  - name: lifecycle", "scenarios: [converge, drift], prepareThrough: converge}\n  - name: lifecycle", 1)
	if _, err := DecodeSuites("s.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "suites[1].prepares[1]: the phase mysql is planned, so that nothing can be borrowed from it yet") {
		t.Errorf("%v", err)
	}
}

func FuzzDecodeMachines(f *testing.F) {
	f.Add([]byte(checkedMachines))
	f.Fuzz(func(t *testing.T, data []byte) {
		machines, err := DecodeMachines("f", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("a refusal of several lines: %q", err)
			}
			return
		}
		for _, machine := range machines.Machines {
			if machine.Cores < 1 || machine.MemoryGiB < 1 || machine.RunsOn == "" {
				t.Fatalf("it was accepted: %+v", machine)
			}
		}
	})
}
