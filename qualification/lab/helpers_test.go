package lab

import (
	"archive/tar"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"
)

func clock() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func contains(text, part string) bool { return strings.Contains(text, part) }

func tarHeaders(t *testing.T, source io.Reader) iter.Seq[*tar.Header] {
	return func(yield func(*tar.Header) bool) {
		reader := tar.NewReader(source)
		for {
			header, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !yield(header) {
				return
			}
		}
	}
}
