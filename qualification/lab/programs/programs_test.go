package programs

import (
	"strings"
	"testing"
)

func TestEverySourceIsWholeAndWithoutTests(t *testing.T) {
	for _, name := range Names {
		files, err := Source(name, "1.26")
		if err != nil {
			t.Fatal(err)
		}
		if len(files["main.go"]) == 0 || !strings.Contains(string(files["go.mod"]), "go 1.26") {
			t.Errorf("%s has %d files", name, len(files))
		}
		for file := range files {
			if strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s carries %s", name, file)
			}
		}
	}
	if _, err := Source("../lab", "1.26"); err == nil {
		t.Error("a program that is none must be an error")
	}
}
