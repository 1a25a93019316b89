package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

const withoutSysResource = uint64(0x1fffeffffff)
const everything = uint64(0x1ffffffffff)

func TestTheFileToRestrictIsFoundInTheCommandLine(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		want      target
	}{
		"create with a bundle":                            {[]string{"--root", "/r", "create", "--bundle", "/b", "id"}, target{"/b/config.json", true}},
		"run with an inline bundle":                       {[]string{"run", "--bundle=/b", "id"}, target{"/b/config.json", true}},
		"create without a bundle uses the working folder": {[]string{"create", "id"}, target{"config.json", true}},
		"exec with a process file":                        {[]string{"exec", "--process", "/p.json", "id"}, target{"/p.json", false}},
		"exec with the short flag":                        {[]string{"--log", "/l", "exec", "-p", "/p.json", "id"}, target{"/p.json", false}},
		"exec of a plain command":                         {[]string{"exec", "id", "ls"}, target{}},
		"delete touches nothing":                          {[]string{"delete", "id"}, target{}},
		"state named like a verb":                         {[]string{"state", "id"}, target{}},
		"nothing at all":                                  {nil, target{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := parse(c.arguments); got != c.want {
				t.Errorf("parse(%v) = %+v, want %+v", c.arguments, got, c.want)
			}
		})
	}
}

func TestOnlyMissingCapabilitiesAreRemoved(t *testing.T) {
	const config = `{"ociVersion":"1.0.2","process":{"args":["sh"],"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE"],"effective":["CAP_SYS_RESOURCE"],"inheritable":["CAP_FUTURE"]}},"root":{"path":"r"}}`
	restricted, changed, err := restrict([]byte(config), true, withoutSysResource)
	if err != nil || !changed {
		t.Fatalf("changed=%v err=%v, want a change", changed, err)
	}
	var got, want any
	if err := json.Unmarshal(restricted, &got); err != nil {
		t.Fatal(err)
	}
	const expected = `{"ociVersion":"1.0.2","process":{"args":["sh"],"capabilities":{"bounding":["CAP_CHOWN"],"effective":[],"inheritable":["CAP_FUTURE"]}},"root":{"path":"r"}}`
	if err := json.Unmarshal([]byte(expected), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s", restricted)
	}
}

func TestNothingChangesWhereNothingIsMissing(t *testing.T) {
	cases := map[string]struct {
		content  string
		inner    bool
		bounding uint64
	}{
		"a full bounding set":      {`{"process":{"capabilities":{"bounding":["CAP_SYS_RESOURCE"]}}}`, true, everything},
		"a container without one":  {`{"process":{"capabilities":{"bounding":["CAP_CHOWN"]}}}`, true, withoutSysResource},
		"no capabilities at all":   {`{"process":{}}`, true, withoutSysResource},
		"no process":               {`{}`, true, withoutSysResource},
		"a process file with none": {`{"args":["ls"]}`, false, withoutSysResource},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, changed, err := restrict([]byte(c.content), c.inner, c.bounding)
			if err != nil || changed || string(got) != c.content {
				t.Errorf("got %s changed=%v err=%v", got, changed, err)
			}
		})
	}
}

func TestAFileIsReplacedWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "process.json")
	if err := os.WriteFile(file, []byte(`{"capabilities":{"bounding":["CAP_SYS_RESOURCE","CAP_KILL"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restrictFile(target{file: file}, withoutSysResource); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != `{"capabilities":{"bounding":["CAP_KILL"]}}` {
		t.Errorf("got %s, %v", got, err)
	}
	if err := os.WriteFile(file, []byte(`not json`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restrictFile(target{file: file}, withoutSysResource); err == nil {
		t.Error("a malformed file must be refused")
	}
}

func TestTheBoundingSetIsReadFromTheStatusFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(file, []byte("CapEff:\t00\nCapBnd:\t000001fffeffffff\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := boundingSet(file); err != nil || got != withoutSysResource {
		t.Errorf("got %x, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("CapEff:\t00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := boundingSet(file); err == nil {
		t.Error("a status file without the line must be refused")
	}
}
