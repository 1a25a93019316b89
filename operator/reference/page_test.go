package main

import (
	"os"
	"strings"
	"testing"

	"ptah.run/ptah/operator/api/v1alpha1"
)

func TestThePageIsWhatTheCodeSays(t *testing.T) {
	got, err := os.ReadFile("../../support/docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page() {
		t.Error("support/docs/reasons.md is not what the code says; run make generate")
	}
}

func TestEveryEntryOfTheVocabularyStandsOnThePageOnce(t *testing.T) {
	text := page()
	for _, entry := range v1alpha1.Vocabulary() {
		if n := strings.Count(text, "\n| `"+string(entry.Reason)+"` | "); n < 1 || n > 2 { // an Event may have the same name
			t.Errorf("reason %s stands %d times on the page", entry.Reason, n)
		}
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "|  |") {
			t.Errorf("an empty cell: %s", line)
		}
	}
}
