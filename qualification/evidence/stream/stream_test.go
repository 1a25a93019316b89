package stream

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

type line struct {
	N int `json:"n"`
}

func written(t testing.TB, count int) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := NewWriter(&buffer)
	for n := range count {
		if err := w.Append(line{n}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func read(data []byte) (int, error) {
	count := 0
	_, err := Read(bytes.NewReader(data), func([]byte) error { count++; return nil })
	return count, err
}

func TestAWholeStreamReadsBack(t *testing.T) {
	for _, count := range []int{0, 1, 1000} {
		if got, err := read(written(t, count)); err != nil || got != count {
			t.Errorf("%d lines read as %d, %v", count, got, err)
		}
	}
}

func TestAnEmptyStreamDiffersFromAMissingOne(t *testing.T) {
	if _, err := read(written(t, 0)); err != nil {
		t.Errorf("a closed stream of zero lines is whole: %v", err)
	}
	if _, err := read(nil); !errors.Is(err, ErrIncomplete) {
		t.Errorf("no bytes at all are %v, want incomplete", err)
	}
}

func TestDefects(t *testing.T) {
	lines := func() []string { return strings.SplitAfter(string(written(t, 5)), "\n")[:6] }
	cases := map[string]struct {
		data func() string
		want error
	}{
		"should see a missing end":                 {func() string { return strings.Join(lines()[:5], "") }, ErrIncomplete},
		"should see a line cut in the middle":      {func() string { s := strings.Join(lines(), ""); return s[:len(s)-20] }, ErrIncomplete},
		"should see a removed line":                {func() string { l := lines(); return strings.Join(append(l[:2], l[3:]...), "") }, ErrAltered},
		"should see exchanged lines":               {func() string { l := lines(); l[1], l[2] = l[2], l[1]; return strings.Join(l, "") }, ErrAltered},
		"should see a repeated line":               {func() string { l := lines(); l[1] += l[1]; return strings.Join(l, "") }, ErrAltered},
		"should see a changed line":                {func() string { l := lines(); l[1] = "{\"n\":9}\n"; return strings.Join(l, "") }, ErrAltered},
		"should see an added line":                 {func() string { l := lines(); l[4] += "{\"n\":9}\n"; return strings.Join(l, "") }, ErrAltered},
		"should see a line after the end":          {func() string { return strings.Join(lines(), "") + "{\"n\":9}\n" }, ErrAltered},
		"should see a blank line":                  {func() string { l := lines(); l[1] += "\n"; return strings.Join(l, "") }, ErrMalformed},
		"should see a line that is no JSON":        {func() string { l := lines(); l[1] = "hello\n"; return strings.Join(l, "") }, ErrMalformed},
		"should see an end in another form":        {func() string { return strings.ReplaceAll(strings.Join(lines(), ""), `{"complete"`, `{ "complete"`) }, ErrAltered},
		"should see the end of another stream":     {func() string { return strings.Join(lines()[:5], "") + string(written(t, 0)) }, ErrAltered},
		"should see an end with carriage return":   {func() string { return strings.ReplaceAll(strings.Join(lines(), ""), "\n", "\r\n") }, ErrAltered},
		"should see bytes after the end of stream": {func() string { return strings.Join(lines(), "") + "x" }, ErrIncomplete},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := read([]byte(test.data())); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

func TestEveryFlippedBitIsSeen(t *testing.T) {
	data := written(t, 3)
	for i := range data {
		for bit := range 8 {
			altered := bytes.Clone(data)
			altered[i] ^= 1 << bit
			if _, err := read(altered); err == nil {
				t.Fatalf("bit %d of byte %d (%q) was flipped and the stream reads as whole", bit, i, data[i])
			}
		}
	}
}

func TestAWriterRefusesWhatAReaderCouldNotTellApart(t *testing.T) {
	w := NewWriter(&bytes.Buffer{})
	for _, value := range []any{"text", 3, []int{1}, map[string]any{"complete": map[string]any{"lines": 0}}} {
		if err := w.Append(value); err == nil {
			t.Errorf("%v was appended", value)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(line{1}); err == nil {
		t.Error("a closed stream was appended to")
	}
	if _, err := w.Close(); err == nil {
		t.Error("a stream was closed twice")
	}
}

type broken struct{ after int }

func (b *broken) Write(data []byte) (int, error) {
	if b.after--; b.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(data), nil
}

func TestAStreamWithAHoleIsNeverClosedAsWhole(t *testing.T) {
	w := NewWriter(&broken{after: 1})
	if err := w.Append(line{1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(line{2}); err == nil {
		t.Fatal("control: the second write must fail")
	}
	if _, err := w.Close(); err == nil {
		t.Error("a stream that lost a line was closed")
	}
}

func TestALineBeyondTheLimitIsRefusedOnBothSides(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	if err := NewWriter(&bytes.Buffer{}).Append(map[string]string{"x": long}); err == nil {
		t.Error("it was written")
	}
	if _, err := read([]byte(`{"x":"` + long + `"}` + "\n")); !errors.Is(err, ErrMalformed) {
		t.Errorf("it was read: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, 0))
	f.Add(written(f, 3))
	f.Add([]byte("{\"complete\":null}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var again bytes.Buffer
		_, err := Read(bytes.NewReader(data), func(raw []byte) error {
			again.Write(append(bytes.Clone(raw), '\n'))
			return nil
		})
		if err == nil && !bytes.HasPrefix(data, again.Bytes()) {
			t.Fatal("a whole stream yields other lines than it holds")
		}
	})
}
