package secretscan_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"ptah.run/ptah/qualification/bundle/secretscan"
)

// small are limits under which no input takes long.
var small = secretscan.Limits{Depth: 8, Derived: 1 << 20, Ratio: 8, Members: 100, Archive: 1 << 20, Block: 4 << 10, Line: 1 << 20}

// FuzzScan holds that any bytes are scanned to an end, always with the same result, and that findings are printable.
func FuzzScan(f *testing.F) {
	for _, wrap := range wraps(f) {
		f.Add(wrap([]byte("postgres://shop:hunter22@db/shop " + labPassword)))
	}
	f.Add([]byte("kind: Secret\ndata:\n  a: &x b\n  <<: *x\n"))
	f.Add([]byte(`"\\\"\u12`))
	f.Add([]byte("\\\n\\\\\n%%4%41&#x41;&lt;"))
	s, err := secretscan.New(small, []byte(labPassword))
	must(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := s.Scan("file", bytes.NewReader(data))
		must(t, err)
		second, err := s.Scan("file", bytes.NewReader(data))
		must(t, err)
		if !reflect.DeepEqual(first, second) {
			t.Errorf("the same bytes gave %v and %v", first, second)
		}
		for _, finding := range first {
			if strings.ContainsFunc(finding.Place, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.Contains(finding.Place, labPassword) {
				t.Errorf("the place %q must not be printed", finding.Place)
			}
		}
		if bytes.Contains(data, []byte(labPassword)) && len(first) == 0 {
			t.Error("a given value that stands there as it is was not found")
		}
	})
}

// FuzzKnownSecretInEncodings holds that a given value is found through any sequence of encodings, whatever text it
// stands in.
func FuzzKnownSecretInEncodings(f *testing.F) {
	f.Add("prefix ", " suffix", []byte{0, 1, 2})
	f.Add("/path/", "\n\n", []byte{1, 1, 5})
	f.Add("", "%41&amp;\\n\"", []byte{3, 0, 4, 2})
	s, err := secretscan.New(secretscan.DefaultLimits, []byte(labPassword))
	must(f, err)
	f.Fuzz(func(t *testing.T, before, after string, layers []byte) {
		// What stands directly beside an encoding can be read as part of it; a space on each side tells them apart.
		data := []byte(plain(before) + " " + labPassword + " " + plain(after))
		for _, layer := range layers[:min(len(layers), 5)] {
			switch layer % 5 {
			case 0:
				quoted, err := json.Marshal(map[string]string{"m": string(data)})
				must(t, err)
				data = quoted
			case 1:
				data = []byte("v: " + base64.StdEncoding.EncodeToString(data) + " ")
			case 2:
				data = gzipped(t, data)
				data = []byte("v: " + base64.URLEncoding.EncodeToString(data) + " ")
			case 3:
				data = []byte("q=" + url.PathEscape(string(data)))
			case 4:
				data = []byte(hex.EncodeToString(data) + " ")
			}
		}
		findings, err := s.Scan("file", bytes.NewReader(data))
		must(t, err)
		if !slices.ContainsFunc(findings, func(f secretscan.Finding) bool { return f.Kind == secretscan.KnownSecret }) {
			t.Errorf("not found in %q: %v", data, findings)
		}
	})
}

// plain keeps text that is neither an encoding of its own nor long enough to reach a limit.
func plain(text string) string {
	kept := strings.Map(func(r rune) rune {
		if r >= 0x20 && r < 0x7f {
			return r
		}
		return ' '
	}, text)
	return kept[:min(len(kept), 200)]
}

// TestTheCommittedReportPasses scans everything that the repository publishes of the quickstart's run.
func TestTheCommittedReportPasses(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "reports", "quickstart")
	s, err := secretscan.New(secretscan.DefaultLimits)
	must(t, err)
	scanned := 0
	must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		scanned++
		findings, err := s.Scan(entry.Name(), file)
		for _, finding := range findings {
			t.Error(finding)
		}
		return err
	}))
	if scanned < 10 {
		t.Errorf("%d files", scanned)
	}
}

// BenchmarkAuditLog measures the scan of a log as API servers write it.
func BenchmarkAuditLog(b *testing.B) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "reports", "quickstart", "runs", "*", "objects", "sha256", "*"))
	must(b, err)
	var log []byte
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(b, err)
		if len(data) > len(log) {
			log = data
		}
	}
	s, err := secretscan.New(secretscan.DefaultLimits, []byte(labPassword))
	must(b, err)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		_, err := s.Scan("audit.log", bytes.NewReader(log))
		must(b, err)
	}
}
