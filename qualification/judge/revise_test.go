package judge_test

import (
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier"
	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
	"ptah.run/ptah/qualification/judge"
	"ptah.run/ptah/qualification/profile"
)

// revise judges the run of a case under a second revision of its profile that lists one change and makes one.
func revise(t *testing.T, d *dossier.Dossier, c *dossiertest.Case, listed, old, fresh string) judge.Judgement {
	t.Helper()
	text := string(c.Profile)
	for _, pair := range [][2]string{{"revision: 1\n", "revision: 2\n"}, {"    reason: First declaration.\n", "    reason: First declaration.\n  - number: 2\n    date: 2026-11-30\n    reason: It was too weak.\n    changes: [" + listed + "]\n"}, {old, fresh}} {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("the profile holds no %q", pair[0])
		}
		text = strings.Replace(text, pair[0], pair[1], 1)
	}
	p, err := profile.Decode("revised", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d.JudgeUnder(p)
}
