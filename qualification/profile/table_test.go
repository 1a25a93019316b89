package profile

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestThePagesOfTheRepositoryAreThoseOfItsProfiles(t *testing.T) {
	pages, err := os.ReadDir("../../support")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, page := range pages {
		if name, ok := strings.CutPrefix(page.Name(), "profile-"); ok {
			have[strings.TrimSuffix(name, ".md")] = true
		}
	}
	eachProfile(t, func(t *testing.T, data []byte) {
		p := decode(t, string(data))
		page, err := os.ReadFile("../../support/profile-" + p.Name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(page, Table(p)) {
			t.Errorf("support/profile-%s.md is not what profiles/%s.yaml gives, write it with: make generate", p.Name, p.Name)
		}
		delete(have, p.Name)
	})
	for name := range have {
		t.Errorf("support/profile-%s.md has no profile, remove it", name)
	}
}

// A page says every number, statement and limit of its profile, so that changing one changes the page.
func TestAPageSaysEverythingThatIsDeclared(t *testing.T) {
	eachProfile(t, func(t *testing.T, data []byte) {
		p := decode(t, string(data))
		page := string(Table(p))
		var words []string
		for _, target := range p.Targets {
			words = append(words, "| "+target.ID+" | "+target.Bound.String()+" "+string(target.Unit)+" | "+target.Statement+" |")
		}
		for _, scenario := range p.Scenarios {
			words = append(words, "| "+scenario.Name+" | "+scenario.Statement+" |")
		}
		for _, revision := range p.Revisions {
			words = append(words, revision.Reason)
		}
		for _, quota := range p.Workload.Quotas {
			words = append(words, "| "+quota.Resource+" | ")
		}
		for _, variant := range p.Workload.Variants {
			words = append(words, "("+variant.Name+")")
		}
		words = append(words, p.NotShown...)
		words = append(words, p.Installation.Conditions...)
		words = append(words, p.Digest(), p.Summary, string(p.Purpose))
		for _, want := range words {
			if !strings.Contains(page, want) {
				t.Errorf("the page of %s does not say %q", p.Name, want)
			}
		}
		if strings.Contains(page, "\n\n\n") || strings.Contains(page, "%!") {
			t.Error("the page has a gap or a word that was not written")
		}
	})
}

func TestPagesOfSmallProfiles(t *testing.T) {
	cases := map[string]struct {
		change []string
		want   string
	}{
		"should say that development is no acceptance":  {nil, "Nothing judged under it is ever an acceptance."},
		"should say what is not spoken about":           {nil, "## PA-07 Operator and database state can be restored\n\nThis profile says nothing about it."},
		"should say what is excluded":                   {[]string{"notShown:", "exclusions: [{requirement: PA-07, scope: all of it, reason: Nobody asked.}]\nnotShown:"}, "- PA-07, all of it: Nobody asked."},
		"should keep a bar from ending a cell":          {[]string{"statement: Few requests.", "statement: Few | requests."}, `Few \| requests.`},
		"should say that a number is taken apart":       {[]string{"statistic: max", "statistic: p95", "minSamples: 1", "minSamples: 20\n    per: process"}, "p95 of manager-requests in any 1m, every window, for each process"},
		"should say the least samples of a percentile":  {[]string{"statistic: max", "statistic: p95"}, "| 20 | functional |"},
		"should say what a revision changed":            {[]string{"reason: First.", "reason: First., changes: [requests]"}, "1 (2026-11-29): First. It changes requests."},
		"should say which faults are left out":          {append(injects("drift"), "minSamples: 1", "minSamples: 1\n    exclude: [drift]"), "| functional | drift |"},
		"should say which cells of a matrix are meant":  {[]string{"minSamples: 1\n    cells: {matrix: functional}", "minSamples: 1\n    cells: {matrix: functional, where: {suite: a, kubernetes: b}}"}, "| functional, kubernetes b, suite a |"},
		"should say what a namespace holds of a quota":  {quota("perOperation: 1, retainedFor: 24m"), "| secrets | 128 | 120 |"},
		"should say where a number comes from":          {nil, "| manager-requests | requests | the audit logs of every API server |"},
		"should say how a slow database is made":        {append(injects("database-delay"), faulty("{class: database-delay, delay: 30s, hold: 4m}")...), "- Fault database-delay, 30s for each new session, for 4m"},
		"should say the size of the fleet of a variant": {variant("schemas: 20, migrations: 20, duration: 10m"), "x 40 resources. Measured for 10m."},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if page := string(Table(decode(t, with(t, test.change...)))); !strings.Contains(page, test.want) {
				t.Errorf("the page does not say %q:\n%s", test.want, page)
			}
		})
	}
}
