package journal

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

func clock() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestWhatWasIntendedMayExistUntilItWasRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := Open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range []Entry{
		{Event: Intended, Kind: Container, Name: "a"},
		{Event: Intended, Kind: Container, Name: "b"},
		{Event: Made, Kind: Container, Name: "a"},
		{Event: Intended, Kind: Network, Name: "n"},
		{Event: Removed, Kind: Container, Name: "a"},
		{Event: Intended, Kind: Container, Name: "c"},
	} {
		if err := j.Append(entry.Event, entry.Kind, entry.Name, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	entries, torn, err := Read(path)
	if err != nil || torn != 0 || len(entries) != 6 || !entries[0].At.Equal(clock()) {
		t.Fatalf("read %v, torn %d, %v", entries, torn, err)
	}
	if got := Objects(entries, Container); !reflect.DeepEqual(got, []string{"b", "c"}) {
		t.Errorf("containers %v", got)
	}
	if got := Objects(entries, Cluster); got != nil {
		t.Errorf("clusters %v", got)
	}
}

func TestALineThatACrashCutOffIsIgnoredAndTheNextOneIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	j, err := Open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(Intended, Network, "n", ""), j.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, errWrite := file.WriteString(`{"event":"intended","kind":"contai`)
	if err := errors.Join(errWrite, file.Close()); err != nil {
		t.Fatal(err)
	}
	entries, torn, err := Read(path)
	if err != nil || torn != 1 || len(entries) != 1 {
		t.Fatalf("read %v, torn %d, %v", entries, torn, err)
	}
	if j, err = Open(path, clock); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Append(Intended, Container, "c", ""), j.Close()); err != nil {
		t.Fatal(err)
	}
	entries, torn, _ = Read(path)
	if torn != 1 || len(entries) != 2 || entries[1].Name != "c" {
		t.Errorf("read %v, torn %d", entries, torn)
	}
}

func TestALabIsFinishedOnlyWhereItsLastWordIsReady(t *testing.T) {
	cases := map[string]struct {
		events []Event
		want   bool
	}{
		"nothing":           {nil, false},
		"ready":             {[]Event{Ready}, true},
		"failed":            {[]Event{Failed}, false},
		"failed when ready": {[]Event{Ready, Failed}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			entries := []Entry{{Event: Intended, Kind: Container, Name: "x"}}
			for _, event := range c.events {
				entries = append(entries, Entry{Event: event, Kind: Lab, Name: "lab"})
			}
			if got := Finished(entries); got != c.want {
				t.Errorf("got %v", got)
			}
			exported := len(c.events) > 0 && c.events[len(c.events)-1] == Failed
			if got := Exported(entries); got != exported {
				t.Errorf("exported: got %v", got)
			}
		})
	}
}

func TestAnAbsentJournalIsEmpty(t *testing.T) {
	entries, torn, err := Read(filepath.Join(t.TempDir(), "none"))
	if err != nil || torn != 0 || entries != nil {
		t.Errorf("got %v, %d, %v", entries, torn, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"event":"intended","kind":"container","name":"a"}` + "\n"))
	f.Add([]byte("{\n\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		entries, _, err := Read(path)
		if err != nil {
			return
		}
		for _, entry := range entries {
			if entry.Event == "" {
				t.Error("an entry without an event was read")
			}
		}
	})
}
