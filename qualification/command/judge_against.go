package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
)

// againstRun names the profile that is stored with the run.
const againstRun = "run"

// compare compares a judgement under p with the other one that --against names. It returns what that is, and the
// differences, which are empty and not nil where there are none.
func (f judgeFlags) compare(d *dossier.Dossier, p *profile.Profile, now judge.Judgement) (string, []judge.Difference, error) {
	before, other, err := f.other(d)
	if err != nil {
		return "", nil, err
	}
	var changes []profile.Change
	if other != nil {
		changes = profile.Diff(other, p)
	}
	identity := before.Profile
	name := fmt.Sprintf("profile %s, revision %d", identity.Name, identity.Revision)
	return name, append([]judge.Difference{}, judge.Compare(before, now, changes)...), nil
}

// other returns the earlier judgement, and the profile it is under where that is at hand.
func (f judgeFlags) other(d *dossier.Dossier) (judge.Judgement, *profile.Profile, error) {
	var before judge.Judgement
	if f.against == againstRun {
		return d.Judge(), d.Profile, nil
	}
	if data, err := readInput(f.against); err == nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&before); err != nil {
			return before, nil, Exit(ExitUsage, fmt.Errorf("%s is no judgement, write one with --output: %w", f.against, err))
		}
		if before.Profile.Digest == d.Profile.Digest() {
			return before, d.Profile, nil
		}
		return before, nil, nil
	}
	p, _, err := LoadProfile(f.against)
	if err != nil {
		return before, nil, err
	}
	return d.JudgeUnder(p), p, nil
}

func printDifferences(out io.Writer, against string, differences []judge.Difference) error {
	if len(differences) == 0 {
		_, err := fmt.Fprintf(out, "\nNo verdict differs from those under %s.\n", against)
		return err
	}
	if _, err := fmt.Fprintf(out, "\nVerdicts that differ from those under %s:\n", against); err != nil {
		return err
	}
	for _, one := range differences {
		where := one.Subject
		if one.Cell != "" && one.Subject != "cell "+one.Cell {
			where += " in " + one.Cell
		}
		printf(out, "- %s: %s, was %s\n", where, one.After, one.Before)
		for _, sentence := range one.Declared {
			printf(out, "    declared: %s\n", sentence)
		}
		if one.Subject == judge.WholeRun || one.Cell == "" || one.Subject == "cell "+one.Cell {
			continue // made of the lines above
		}
		for _, reason := range one.Came {
			printf(out, "    now: %s: %s\n", reason.Code, reason.Message)
		}
		for _, reason := range one.Went {
			printf(out, "    no longer: %s: %s\n", reason.Code, reason.Message)
		}
	}
	return nil
}

// completeJudge gives the flags of judge their completions.
func completeJudge(command *cobra.Command) {
	mustComplete(command, "against", func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		names, directive := completeProfiles(command, nil, begun)
		return append(names, againstRun), directive
	})
	mustComplete(command, "output", completeEndings("json"))
}
