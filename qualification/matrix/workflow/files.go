package workflow

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/profile"
)

// Folder holds the workflow files.
const Folder = ".github/workflows"

// actions are the actions that workflows use, each at one version everywhere. These tags were written down on a machine
// that does not reach the place where actions are published, so that nothing here has resolved one of them: before the
// first run, and whenever one is changed, look each up and pin the commit that its tag then names.
var actions = map[string]string{
	"checkout": "actions/checkout@v5", "go": "actions/setup-go@v6", "cache": "actions/cache@v4",
	"upload": "actions/upload-artifact@v5", "download": "actions/download-artifact@v6",
}

var (
	//go:embed ci.yaml.tmpl
	ciTemplate string
	//go:embed qualification.yaml.tmpl
	qualificationTemplate string
)

// Stage is the cells of one matrix that a workflow runs.
type Stage struct {
	Matrix string
	Depth  string
	All    int // cells of the depth, those that cannot run included
	Jobs   []Job
}

// data is what the templates are filled with.
type data struct {
	Actions  map[string]string
	Smoke    Job // the cell that each change is tried on
	Stages   []Stage
	Declared []string // every profile
	Profiles []string // those that a release can be qualified under
	NotRun   int      // cells of a release that cannot run yet
}

// Files returns every workflow file by its path, made from the matrices, the suites, the machines and the profiles of
// a repository.
func Files(tree catalogue.Tree) (map[string][]byte, error) {
	filled := data{Actions: actions}
	for _, m := range tree.Matrices {
		stage, err := stageOf(tree, m, "release")
		if err != nil {
			return nil, err
		}
		filled.Stages = append(filled.Stages, stage)
		filled.NotRun += stage.All - len(stage.Jobs)
	}
	smoke, err := smokeOf(tree)
	if err != nil {
		return nil, err
	}
	filled.Smoke = smoke
	for _, p := range tree.Profiles {
		filled.Declared = append(filled.Declared, p.Name)
		if covers(p, filled.Stages) {
			filled.Profiles = append(filled.Profiles, p.Name)
		}
	}
	if len(filled.Profiles) == 0 {
		return nil, errors.New("no profile covers every matrix at depth release, so that no release could be qualified; declare one")
	}
	slices.SortStableFunc(filled.Stages, func(a, b Stage) int { return longest(a) - longest(b) })
	files := map[string][]byte{}
	for name, text := range map[string]string{"ci.yaml": ciTemplate, "qualification.yaml": qualificationTemplate} {
		if files[Folder+"/"+name], err = fill(name, text, filled); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// covers says that a profile demands every stage.
func covers(p *profile.Profile, stages []Stage) bool {
	for _, stage := range stages {
		if !slices.Contains(p.Coverage, profile.Coverage{Matrix: stage.Matrix, Depth: stage.Depth}) {
			return false
		}
	}
	return len(stages) > 0
}

func longest(stage Stage) int {
	minutes := 0
	for _, job := range stage.Jobs {
		minutes = max(minutes, job.Minutes)
	}
	return minutes
}

func stageOf(tree catalogue.Tree, m *matrix.Matrix, depth string) (Stage, error) {
	plan, err := catalogue.Plan(m, depth, tree.Suites, tree.Machines)
	if err != nil {
		return Stage{}, err
	}
	jobs, err := Jobs(plan)
	if err != nil {
		return Stage{}, fmt.Errorf("matrix %s: %w", m.Name, err)
	}
	return Stage{Matrix: m.Name, Depth: depth, All: len(plan), Jobs: jobs.Include}, nil
}

// smokeOf returns the only smoke cell of the functional matrix, on which every change is tried.
func smokeOf(tree catalogue.Tree) (Job, error) {
	for _, m := range tree.Matrices {
		if m.Name != Functional {
			continue
		}
		stage, err := stageOf(tree, m, "smoke")
		if err != nil {
			return Job{}, err
		}
		if len(stage.Jobs) != 1 || stage.All != 1 {
			return Job{}, fmt.Errorf("matrix %s has %d smoke cells of which %d can run; a change is tried on exactly one", m.Name, stage.All, len(stage.Jobs))
		}
		return stage.Jobs[0], nil
	}
	return Job{}, fmt.Errorf("there is no matrix %s, whose smoke cell a change is tried on", Functional)
}

// Functional is the matrix whose smoke cell every change is tried on.
const Functional = "functional"

// fill fills a template. A value that would not stand as plain text in YAML is refused.
func fill(name, text string, filled data) ([]byte, error) {
	parsed, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Funcs(template.FuncMap{"plain": plain, "needs": needs}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read the template of %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, filled); err != nil {
		return nil, fmt.Errorf("make the workflow %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// plain refuses what YAML, a shell or an expression of a workflow would take for more than text.
func plain(value string) (string, error) {
	if value == "" || strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@-") != "" {
		return "", fmt.Errorf("%q cannot stand in a workflow, use letters, digits, dots and dashes", value)
	}
	return value, nil
}

// needs lists the stages that have a job.
func needs(stages []Stage) (string, error) {
	var names []string
	for _, stage := range stages {
		if len(stage.Jobs) == 0 {
			continue
		}
		name, err := plain(stage.Matrix)
		if err != nil {
			return "", err
		}
		names = append(names, name)
	}
	return "[" + strings.Join(names, ", ") + "]", nil
}
