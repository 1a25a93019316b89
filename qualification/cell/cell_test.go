package cell

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

func TestWholeLines(t *testing.T) {
	for name, c := range map[string]struct{ written, kept string }{
		"should keep whole lines":                        {"one\ntwo\n", "one\ntwo\n"},
		"should leave out a line that is being written":  {"one\ntw", "one\n"},
		"should keep nothing of a first unfinished line": {"on", ""},
		"should keep lines longer than a buffer":         {strings.Repeat("x", 70000) + "\ny", strings.Repeat("x", 70000) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(&wholeLines{source: bufio.NewReader(strings.NewReader(c.written))})
			if err != nil || string(got) != c.kept {
				t.Errorf("got %d bytes and %v, want %d bytes", len(got), err, len(c.kept))
			}
		})
	}
}
