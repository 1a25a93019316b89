package workflow

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/repository"
)

func plan(keys ...string) []catalogue.CellPlan {
	machine := catalogue.Machine{Name: "m", RunsOn: "ubuntu-24.04", MaxMinutes: 100}
	var cells []catalogue.CellPlan
	for _, key := range keys {
		cells = append(cells, catalogue.CellPlan{Machine: machine, Cell: matrix.Cell{Key: key, Matrix: "functional", Minutes: 15, Axes: map[string]string{"suite": "data-plane"},
			Attributes: map[string]string{"kubernetes.minor": "1.37", "database.engine": "PostgreSQL", "database.version": "17"}}})
	}
	return cells
}

func TestEveryCellThatCanRunIsAJob(t *testing.T) {
	cells := plan("a.b", "c", "d")
	cells[1].NotRun = []string{"Not written."}
	cells[2].Minutes = 40
	jobs, err := Jobs(cells)
	if err != nil || len(jobs.Include) != 2 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	want := Job{Cell: "a.b", Matrix: "functional", Suite: "data-plane", Minor: "1.37", Engine: "PostgreSQL", Version: "17", RunsOn: "ubuntu-24.04", Minutes: 15, Timeout: 90}
	if jobs.Include[0] != want || jobs.Include[1].Timeout != 100 {
		t.Errorf("%+v", jobs.Include)
	}
	line, err := jobs.JSON()
	var read Include
	if err != nil || strings.Contains(line, "\n") || json.Unmarshal([]byte(line), &read) != nil || read.Include[0] != want {
		t.Errorf("%s, %v", line, err)
	}
	if none, err := Jobs(nil); err != nil || len(none.Include) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestWhatCannotStandInAWorkflowIsRefused(t *testing.T) {
	for _, key := range []string{"", "a b", "$(id)", "${{ x }}", "a..b", "a\nb", "../a"} {
		if _, err := Jobs(plan(key)); err == nil || !strings.Contains(err.Error(), "is no key of a cell") {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, value := range []string{"", "a: b", "${{ x }}", "a\nb", "'a'", "#a"} {
		if _, err := plain(value); err == nil {
			t.Errorf("%q was accepted", value)
		}
	}
	many := make([]string, MaxJobs+1)
	for i := range many {
		many[i] = "a"
	}
	if _, err := Jobs(plan(many...)); err == nil || !strings.Contains(err.Error(), "257 cells can run, and a matrix of GitHub Actions has at most 256 jobs") {
		t.Errorf("%v", err)
	}
	if _, err := Jobs(plan(many[1:]...)); err != nil {
		t.Errorf("control: %v", err)
	}
}

func tree(t *testing.T) catalogue.Tree {
	t.Helper()
	loaded, err := repository.Load(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// workflowFile is what these tests read of a workflow.
type workflowFile struct {
	On   any `yaml:"on"`
	Jobs map[string]struct {
		If       string `yaml:"if"`
		Needs    []string
		RunsOn   string `yaml:"runs-on"`
		Timeout  any    `yaml:"timeout-minutes"`
		Strategy struct {
			FailFast *bool `yaml:"fail-fast"`
			Matrix   struct {
				Include []struct {
					Cell   string
					RunsOn string `yaml:"runs-on"`
				}
			}
		}
		Steps []struct {
			Uses            string
			Run             string
			ContinueOnError *bool `yaml:"continue-on-error"`
		}
	}
}

func read(t *testing.T, files map[string][]byte, name string) workflowFile {
	t.Helper()
	var file workflowFile
	if err := yaml.Unmarshal(files[Folder+"/"+name], &file); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, files[Folder+"/"+name])
	}
	return file
}

func TestTheFilesHoldWhatTheMatricesDeclare(t *testing.T) {
	loaded := tree(t)
	files, err := Files(loaded)
	if err != nil || len(files) != 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	ci := read(t, files, "ci.yaml")
	if thin := ci.Jobs["thin-line"]; thin.RunsOn != "ubuntu-24.04" || thin.Steps[3].Run != "bash .ci/run" || thin.If != "" {
		t.Errorf("%+v", thin)
	}
	if runs := string(files[Folder+"/ci.yaml"]); !strings.Contains(runs, "profile diff --since HEAD^1 development production quickstart schemas\n") || !strings.Contains(runs, "fetch-depth: 2\n") {
		t.Errorf("no change of a profile is refused for want of a revision:\n%s", runs)
	}
	release := read(t, files, "qualification.yaml")
	want := map[string]bool{}
	stages := 0
	for _, m := range loaded.Matrices {
		cells, err := catalogue.Plan(m, "release", loaded.Suites, loaded.Machines)
		if err != nil {
			t.Fatal(err)
		}
		can := 0
		for _, cell := range cells {
			if cell.Runnable() {
				want[m.Name+" "+cell.Key] = true
				can++
			}
		}
		if can > 0 {
			stages++
		}
		if _, there := release.Jobs[m.Name]; there != (can > 0) {
			t.Errorf("matrix %s with %d cells that can run has a job: %v", m.Name, can, there)
		}
	}
	for name, job := range release.Jobs {
		for _, step := range job.Steps {
			if step.ContinueOnError != nil {
				t.Errorf("job %s goes on after an error", name)
			}
		}
		if name == "gate" {
			continue
		}
		if job.Strategy.FailFast == nil || *job.Strategy.FailFast || job.If != "" {
			t.Errorf("job %s ends early: %+v", name, job)
		}
		for _, include := range job.Strategy.Matrix.Include {
			if !want[name+" "+include.Cell] || include.RunsOn == "" {
				t.Errorf("job %s runs %+v, which is not declared", name, include)
			}
			delete(want, name+" "+include.Cell)
		}
	}
	if len(want) > 0 {
		t.Errorf("no job runs %v", want)
	}
	if gate := release.Jobs["gate"]; gate.If != "${{ !cancelled() }}" || len(gate.Needs) != stages {
		t.Errorf("%+v", gate)
	}
}

func TestAnotherMatrixMakesAnotherFile(t *testing.T) {
	before, err := Files(tree(t))
	if err != nil {
		t.Fatal(err)
	}
	changed := tree(t)
	changed.Machines.Machines[0].RunsOn = "large"
	after, err := Files(changed)
	if err != nil {
		t.Fatal(err)
	}
	for name := range before {
		if string(before[name]) == string(after[name]) || !strings.Contains(string(after[name]), "runs-on: large") {
			t.Errorf("%s does not follow the machines", name)
		}
	}
}

func TestATreeThatMakesNoWorkflowIsRefused(t *testing.T) {
	cases := map[string]struct {
		change func(*catalogue.Tree)
		want   string
	}{
		"should refuse a tree without the functional matrix": {func(tree *catalogue.Tree) { tree.Matrices = nil }, "there is no matrix functional"},
		"should refuse a smoke cell that cannot run": {func(tree *catalogue.Tree) {
			for i := range tree.Suites.Suites {
				tree.Suites.Suites[i].Planned = "Gone."
			}
		}, "has 1 smoke cells of which 0 can run"},
		"should refuse a tree whose releases no profile covers": {func(tree *catalogue.Tree) {
			for _, p := range tree.Profiles {
				p.Coverage = p.Coverage[:1]
			}
		}, "no profile covers every matrix at depth release"},
		"should refuse a runner that is code":    {func(tree *catalogue.Tree) { tree.Machines.Machines[0].RunsOn = "${{ x }}" }, "cannot stand in a workflow"},
		"should refuse a matrix without a depth": {func(tree *catalogue.Tree) { tree.Matrices[0].Depths = nil }, "has no depth"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			broken := tree(t)
			test.change(&broken)
			if _, err := Files(broken); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
