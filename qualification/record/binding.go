package record

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"ptah.run/ptah/qualification/carryover"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// manifestSubject names the release manifest among the subjects.
const manifestSubject = "release-manifest"

// namesAll refuses a manifest that does not name every digest that was tested, and the commit that it was built from.
// It reads the manifest as text: whatever its layout, it must say them.
func namesAll(manifest []byte, subject []Resource, ancestry *carryover.Ancestry) error {
	for _, resource := range subject {
		if resource.Name != manifestSubject && !bytes.Contains(manifest, []byte(resource.Digest["sha256"])) {
			return fmt.Errorf("the release manifest does not name %s sha256:%s, which was tested", resource.Name, resource.Digest["sha256"])
		}
	}
	if ancestry != nil && ancestry.Release != "" && !bytes.Contains(manifest, []byte(ancestry.Release)) {
		return fmt.Errorf("the release manifest does not name the commit %s that the release is said to be built from", ancestry.Release)
	}
	return nil
}

// unbound says what an acceptance must name and these cells do not: the release manifest, the clusters, platforms that
// ran natively, where images came from, and a harness that descends from the release and leaves it alone.
func unbound(cells []statement[TestResult]) []string {
	if len(cells) == 0 {
		return []string{"a cell"}
	}
	var missing []string
	for _, cell := range cells {
		missing = append(missing, (&VerifiedCell{TestResult: cell.Predicate, Subject: cell.Subject}).Facts().Unbound()...)
	}
	return missing
}

// Facts is what the statement of a cell binds, by name.
type Facts struct {
	Cell        matrix.Cell
	Verdict     verdict.Verdict
	Profile     judge.ProfileIdentity
	Subject     map[string]string // name to sha256 digest
	Root        string            // digest of the evidence of the cell; empty where it left none
	Run         string            // root of the run that the evidence is part of
	Cluster     string            // UID
	Platform    string            // such as linux/amd64
	Native      bool
	ImageSource string
	Ancestry    *carryover.Ancestry
}

// Facts returns what the cell binds.
func (c *VerifiedCell) Facts() Facts {
	facts := Facts{Cell: c.Judgement.Cell, Verdict: c.Judgement.Verdict, Subject: map[string]string{}, Root: c.Judgement.Root, Ancestry: c.Ancestry}
	for _, resource := range c.Subject {
		facts.Subject[resource.Name] = "sha256:" + resource.Digest["sha256"]
	}
	for _, resource := range c.Configuration {
		annotations := resource.Annotations
		switch {
		case resource.Name == "evidence":
			facts.Run = annotations["runRoot"]
		case resource.Name == "cluster":
			facts.Cluster = strings.TrimPrefix(resource.URI, clusterScheme)
		case resource.Name == "platform":
			facts.Platform, facts.Native, facts.ImageSource = annotations["platform"], annotations["execution"] == execution(true), annotations["imageSource"]
		case strings.HasPrefix(resource.Name, profilePrefix):
			revision, _ := strconv.Atoi(annotations["revision"]) // a revision that is no number is 0, which no profile has
			facts.Profile = judge.ProfileIdentity{Name: strings.TrimPrefix(resource.Name, profilePrefix), Revision: revision,
				Purpose: profile.Purpose(annotations["purpose"]), Digest: "sha256:" + resource.Digest["sha256"]}
		}
	}
	return facts
}

// Unbound says what an acceptance must name and the cell does not.
func (f Facts) Unbound() []string {
	var missing []string
	add := func(absent bool, what string) {
		if absent {
			missing = append(missing, what+" (cell "+f.Cell.Key+")")
		}
	}
	add(f.Subject[manifestSubject] == "", "a release manifest")
	add(f.Cluster == "", "the cluster")
	add(f.Platform == "" || !f.Native, "a platform that is not emulated")
	add(f.ImageSource == "", "the source of the images")
	add(f.Ancestry == nil, "the ancestry of the harness")
	if f.Ancestry != nil {
		v := f.Ancestry.Judge()
		add(!v.Satisfies(), "a harness that descends from the release and leaves it alone, its ancestry is "+v.String())
	}
	return missing
}
