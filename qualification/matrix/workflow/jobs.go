// Package workflow says in the words of GitHub Actions what a matrix declares: a job for each cell that can run, and
// the workflow files that hold them. It is pure; nothing in a workflow file is written by hand.
package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"ptah.run/ptah/qualification/matrix/catalogue"
)

// MaxJobs is the largest matrix that GitHub Actions runs.
const MaxJobs = 256

// Job is a cell as one job of a matrix of GitHub Actions.
type Job struct {
	Cell     string `json:"cell"` // key of the cell
	Matrix   string `json:"matrix"`
	Suite    string `json:"suite"`
	Minor    string `json:"kubernetes"`
	Engine   string `json:"engine"`
	Version  string `json:"version"`
	Platform string `json:"platform"` // empty where the cell leaves it open
	RunsOn   string `json:"runs-on"`
	Minutes  int    `json:"minutes"` // estimated
	Timeout  int    `json:"timeout-minutes"`
}

// Include is a matrix of GitHub Actions that lists its jobs.
type Include struct {
	Include []Job `json:"include"`
}

// keyPattern keeps what a shell or an expression could take for its own out of workflow files.
var keyPattern = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)

// spare is added to twice the estimate of a cell: building the programs and the images of a lab on an empty machine.
const spare = 60

// Jobs returns a job for each cell that can run, in the order of the plan. Cells that cannot run have none: what needs
// them finds them missing. More jobs than GitHub Actions runs in one matrix are refused.
func Jobs(plan []catalogue.CellPlan) (Include, error) {
	jobs := Include{Include: []Job{}}
	for _, cell := range plan {
		if !cell.Runnable() {
			continue
		}
		if !keyPattern.MatchString(cell.Key) {
			return Include{}, fmt.Errorf("%q is no key of a cell", cell.Key)
		}
		engine, version := cell.Database()
		timeout := 2*cell.Minutes + spare
		if limit := cell.Machine.MaxMinutes; limit > 0 {
			timeout = min(timeout, limit)
		}
		jobs.Include = append(jobs.Include, Job{Cell: cell.Key, Matrix: cell.Matrix, Suite: cell.Suite(), Minor: cell.Minor(), Engine: engine, Version: version,
			Platform: cell.Platform(), RunsOn: cell.Machine.RunsOn, Minutes: cell.Minutes, Timeout: timeout})
	}
	if len(jobs.Include) > MaxJobs {
		return Include{}, fmt.Errorf("%d cells can run, and a matrix of GitHub Actions has at most %d jobs; choose another depth", len(jobs.Include), MaxJobs)
	}
	return jobs, nil
}

// JSON is the matrix on one line, for fromJSON of a workflow.
func (i Include) JSON() (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(i); err != nil {
		return "", fmt.Errorf("write the matrix of GitHub Actions: %w", err)
	}
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))), nil
}
