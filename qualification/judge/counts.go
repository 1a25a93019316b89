package judge

import (
	"maps"
	"slices"

	"ptah.run/ptah/qualification/evidence/sample"
	"ptah.run/ptah/qualification/profile"
	"ptah.run/ptah/qualification/verdict"
)

// unauthorisedStatements returns, for each database, how many statements of its journals nothing allowed. A journal that
// holds no statement at all may never have been written: nothing is concluded from it.
func (c *court) unauthorisedStatements(target profile.Target) measurement {
	var result measurement
	if !c.source(target, sample.Statements, &result) {
		return result
	}
	byDatabase, statements := map[string]*Sample{}, map[string]int{}
	for _, journal := range c.evidence.Samples.Statements {
		if journal.Failed != "" {
			result.problem(verdict.ReadingFailed, target, "the statement journal of %s cannot be read: %s", journal.Database, firstLine(journal.Failed))
			continue
		}
		one := byDatabase[journal.Database]
		if one == nil {
			one = &Sample{Subject: journal.Database, From: journal.From, To: journal.To}
			byDatabase[journal.Database] = one
		}
		one.From, one.To = earlier(one.From, journal.From), later(one.To, journal.To)
		statements[journal.Database] += len(journal.Statements)
		for _, statement := range journal.Statements {
			if statement.Authorisation == "" {
				one.Value++
			}
		}
	}
	whole, known := c.span()
	for _, database := range slices.Sorted(maps.Keys(byDatabase)) {
		one := byDatabase[database]
		switch {
		case statements[database] == 0:
			result.problem(verdict.NoSamples, target, "the statement journal of %s holds no statement at all, so nothing shows that it was written", database)
			continue
		case known && (one.From.After(whole.From) || one.To.Before(whole.To)):
			result.problem(verdict.ReadingsGap, target, "the statement journal of %s reaches from %s to %s, the cell from %s to %s", database,
				clockTime(one.From), clockTime(one.To), clockTime(whole.From), clockTime(whole.To))
		}
		result.samples = append(result.samples, *one)
	}
	return result
}

// foreignImages returns 1 for each container of the product that runs an image that the release does not name, and 0
// for every other.
func (c *court) foreignImages(target profile.Target) measurement {
	var result measurement
	if !c.source(target, sample.Containers, &result) {
		return result
	}
	release := slices.Collect(maps.Values(c.evidence.Inputs.Images))
	seen := map[string]bool{}
	for _, list := range c.evidence.Samples.Containers {
		if list.Failed != "" {
			result.problem(verdict.ReadingFailed, target, "the running containers cannot be listed: %s", firstLine(list.Failed))
		}
		for _, container := range list.Containers {
			name := container.Pod + "/" + container.Name
			if identity := name + " " + container.UID + " " + container.Digest; seen[identity] {
				continue
			} else {
				seen[identity] = true
			}
			one := Sample{Subject: name, From: list.From, To: list.To}
			if !slices.Contains(release, container.Digest) {
				one.Value = 1
			}
			result.samples = append(result.samples, one)
		}
	}
	return result
}

// unverifiedArtifacts returns 1 for each artifact of the release of which a check failed or was not made, and 0 for every
// other.
func (c *court) unverifiedArtifacts(target profile.Target) measurement {
	var result measurement
	if !c.source(target, sample.Artifacts, &result) {
		return result
	}
	for _, artifact := range c.evidence.Samples.Artifacts {
		if artifact.Failed != "" {
			result.problem(verdict.ReadingFailed, target, "the artifact %s cannot be had: %s", artifact.Name, firstLine(artifact.Failed))
			continue
		}
		one := Sample{Subject: artifact.Name, From: artifact.From, To: artifact.To}
		for check, outcome := range map[string]*bool{"digest": artifact.Matches, "signature": artifact.Signature, "provenance": artifact.Provenance} {
			if outcome == nil {
				result.problem(verdict.NoEvidence, target, "the %s of the artifact %s was not checked", check, artifact.Name)
			} else if !*outcome {
				one.Value = 1
			}
		}
		result.samples = append(result.samples, one)
	}
	return result
}

// disclosedCredentials returns how many credentials were found in each file that was searched.
func (c *court) disclosedCredentials(target profile.Target) measurement {
	var result measurement
	if !c.source(target, sample.Scans, &result) {
		return result
	}
	for _, scan := range c.evidence.Samples.Scans {
		if scan.Failed != "" {
			result.problem(verdict.ReadingFailed, target, "the file %s cannot be searched: %s", scan.File, firstLine(scan.Failed))
			continue
		}
		result.samples = append(result.samples, Sample{Subject: scan.File, From: scan.From, To: scan.To, Value: float64(len(scan.Findings))})
	}
	return result
}

// incompleteStreams returns 1 for each stream of the cell without a record that it is complete, and 0 for every other.
func (c *court) incompleteStreams(profile.Target) measurement {
	var result measurement
	whole, _ := c.span()
	add := func(name, digest string, complete bool) {
		one := Sample{Subject: name, From: whole.From, To: whole.To}
		if !complete {
			one.Value = 1
		}
		result.samples, result.evidence = append(result.samples, one), append(result.evidence, digest)
	}
	for _, ledger := range c.evidence.Ledgers {
		add("ledger of "+ledger.Suite, ledger.Digest, ledger.Whole)
	}
	if driver := c.evidence.Driver; driver != nil {
		add("account of the driver", driver.Digest, driver.Whole)
	}
	if phases := c.evidence.Phases; phases != nil {
		add("account of the phases", phases.Digest, phases.Whole)
	}
	if c.evidence.Samples != nil {
		for _, source := range sample.Sources() {
			if file, known := c.evidence.Samples.Files[source]; known {
				add(source.Name(), file.Digest, file.Problem == "")
			}
		}
	}
	return result
}
