package report

import (
	"fmt"
	"slices"
	"strings"
)

// Markdown renders the page as Markdown.
func Markdown(page Page, inputDigest string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Ptah operator %s: qualification\n\n", plain(page.Release.Version))
	fmt.Fprintf(&b, "Profile %s, revision %d (%s), run %s, %s.\n\n", plain(page.Profile.Name), page.Profile.Revision, plain(string(page.Profile.Purpose)), plain(page.Run), moment(page.Started))
	fmt.Fprintf(&b, "**%s.** %s %s\n\n", plain(page.Verdict.String()), page.Notice, plain(page.Answer))
	for _, reason := range page.Verdict.Reasons {
		fmt.Fprintf(&b, "- %s %s: %s\n", plain(string(reason.Code)), plain(reason.Subject), plain(reason.Message))
	}
	markdownConcerns(&b, page)
	b.WriteString("## What this does not show\n\n")
	for _, limit := range page.Limits {
		fmt.Fprintf(&b, "- %s\n", plain(limit))
	}
	b.WriteString("\n## Requirements\n\n| Requirement | What | Verdict |\n| --- | --- | --- |\n")
	for _, need := range page.Requirements {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", need.ID, plain(need.Title), plain(need.state()))
	}
	b.WriteString("\n")
	for _, need := range page.Requirements {
		markdownRequirement(&b, need)
	}
	markdownCells(&b, page)
	b.WriteString("## Identity\n\n| What | Digest |\n| --- | --- |\n")
	for _, role := range sortedKeys(page.Release.Images) {
		fmt.Fprintf(&b, "| ptah/%s | %s |\n", plain(role), code(page.Release.Images[role]))
	}
	fmt.Fprintf(&b, "| chart %s | %s |\n| profile | %s |\n| evidence root | %s |\n| report input | %s |\n| harness | %s |\n",
		plain(page.Release.ChartVersion), code(page.Release.ChartDigest), code(page.Profile.Digest), code(page.Root), code(inputDigest), code(page.Harness.String()))
	return []byte(b.String())
}

// state is the verdict of a requirement, or why it has none.
func (r Requirement) state() string {
	if r.Verdict == nil {
		return string(r.Standing)
	}
	return r.Verdict.String()
}

func markdownConcerns(b *strings.Builder, page Page) {
	concerns := page.concerns()
	if len(concerns) == 0 {
		return
	}
	b.WriteString("## What needs attention first\n\n")
	for _, concern := range concerns[:min(len(concerns), mostConcerns)] {
		why := ""
		if len(concern.First.Verdict.Reasons) > 0 {
			why = ": " + concern.First.Verdict.Reasons[0].Message
		}
		fmt.Fprintf(b, "- %s %s, %s %s%s\n", concern.Requirement.ID, plain(concern.Item.Name), plain(concern.Item.Verdict.String()), concern.Where(), plain(why))
	}
	if more := len(concerns) - mostConcerns; more > 0 {
		fmt.Fprintf(b, "- and %d more, below\n", more)
	}
	b.WriteString("\n")
}

func markdownRequirement(b *strings.Builder, need Requirement) {
	if len(need.Items) == 0 && need.Verdict == nil {
		return
	}
	fmt.Fprintf(b, "### %s %s: %s\n\n", need.ID, plain(need.Title), plain(need.state()))
	if need.Verdict != nil {
		for _, reason := range need.Verdict.Reasons {
			fmt.Fprintf(b, "- %s %s: %s\n", plain(string(reason.Code)), plain(reason.Subject), plain(reason.Message))
		}
	}
	for _, item := range need.Items {
		fmt.Fprintf(b, "#### %s: %s\n\n%s\n\n", plain(item.Name), plain(item.Verdict.String()), plain(item.Statement))
		if item.Measured != "" {
			fmt.Fprintf(b, "%s.\n\n", plain(item.Measured))
		}
		if len(item.Results) == 0 {
			b.WriteString("No cell of this run is selected to show it.\n\n")
			continue
		}
		b.WriteString("| Cell | Shown | Verdict | Evidence |\n| --- | --- | --- | --- |\n")
		for _, result := range item.Results {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", plain(result.Cell), plain(result.Number), plain(verdictWords(result.Verdict)), referenceList(result.Evidence))
		}
		b.WriteString("\n")
	}
}

func markdownCells(b *strings.Builder, page Page) {
	b.WriteString("## Cells\n\n| Cell | Verdict | Kubernetes | Platform | Driver | Inputs | Evidence |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, tested := range page.Cells {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", plain(tested.Key), plain(verdictWords(tested.Verdict)), plain(orNone(tested.Lab.KubernetesVersion)), plain(platform(tested)), plain(driver(tested)), code(tested.InputDigest), code(tested.Root))
	}
	b.WriteString("\n")
}

func referenceList(references []Reference) string {
	var list []string
	for _, reference := range references {
		list = append(list, strings.TrimSpace(plain(reference.Name)+" "+code(short(reference.Digest))))
	}
	return orNone(strings.Join(list, ", "))
}

// plain makes text from outside fit into Markdown: it breaks no table, begins no list and becomes no markup.
func plain(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ", "<", "&lt;", "`", "'", "[", "\\[", "]", "\\]", "*", "\\*", "\\", "\\\\").Replace(text)
}

// code writes a digest so that it can be copied.
func code(text string) string { return "`" + plain(orNone(text)) + "`" }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
