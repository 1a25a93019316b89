package delivery

import (
	"encoding/base64"
	"strings"
	"testing"

	"ptah.run/ptah/operator/operation/identity"
)

func whole() identity.Identity {
	return identity.Identity{
		Namespace: "shop", Kind: KindPtahSchema, Name: "orders", UID: "u1", Generation: 1, ExecutionBindingID: "v1-a", InputFingerprint: "f",
		Operation: OperationApply, OperationID: "o", JobName: "j", JobUID: "u2", PodName: "p", PodUID: "u3",
	}
}

func TestAnIdentityIsReadAsItWasWritten(t *testing.T) {
	header, err := Encode(whole())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(header)
	if err != nil || got != whole() {
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestAnIdentityThatIsNotWholeIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*identity.Identity)
		want string
	}{
		"no namespace":         {func(i *identity.Identity) { i.Namespace = "" }, "namespace is missing"},
		"no name":              {func(i *identity.Identity) { i.Name = "" }, "name is missing"},
		"no UID":               {func(i *identity.Identity) { i.UID = "" }, "uid is missing"},
		"no epoch":             {func(i *identity.Identity) { i.ExecutionBindingID = "" }, "executionBindingID is missing"},
		"no inputs":            {func(i *identity.Identity) { i.InputFingerprint = "" }, "inputFingerprint is missing"},
		"no operation ID":      {func(i *identity.Identity) { i.OperationID = "" }, "operationID is missing"},
		"no Job":               {func(i *identity.Identity) { i.JobName = "" }, "jobName is missing"},
		"no Job UID":           {func(i *identity.Identity) { i.JobUID = "" }, "jobUID is missing"},
		"no Pod":               {func(i *identity.Identity) { i.PodName = "" }, "podName is missing"},
		"no Pod UID":           {func(i *identity.Identity) { i.PodUID = "" }, "podUID is missing"},
		"another kind":         {func(i *identity.Identity) { i.Kind = "Secret" }, `kind "Secret" delivers no results`},
		"another operation":    {func(i *identity.Identity) { i.Operation = "Drop" }, `operation "Drop" delivers no results`},
		"no generation":        {func(i *identity.Identity) { i.Generation = 0 }, "generation is not positive"},
		"a name too long":      {func(i *identity.Identity) { i.JobName = strings.Repeat("a", 64) }, "jobName is longer than 63 bytes"},
		"a name with a blank":  {func(i *identity.Identity) { i.Name = "a b" }, "a character that no identifier has"},
		"a name with a NUL":    {func(i *identity.Identity) { i.UID = "a\x00b" }, "a character that no identifier has"},
		"a name beyond ASCII":  {func(i *identity.Identity) { i.Name = "ä" }, "a character that no identifier has"},
		"a name with a quote":  {func(i *identity.Identity) { i.Name = `a"b` }, "a character that no identifier has"},
		"a namespace too long": {func(i *identity.Identity) { i.Namespace = strings.Repeat("a", 64) }, "namespace is longer than 63 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := whole()
			test.edit(&spoiled)
			if _, err := Encode(spoiled); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestAHeaderThatIsNotCanonicalIsRefused(t *testing.T) {
	header, err := Encode(whole())
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for name, test := range map[string]struct{ header, want string }{
		"padding":          {header + "=", "not base64url"},
		"another alphabet": {"+/+/", "not base64url"},
		"a blank more":     {encode(strings.Replace(string(text), ":", ": ", 1)), "not in canonical form"},
		"a field twice":    {encode(strings.Replace(string(text), `{`, `{"namespace":"bank",`, 1)), "not in canonical form"},
		"an unknown field": {encode(strings.Replace(string(text), `{`, `{"odd":1,`, 1)), "unknown field"},
		"two documents":    {encode(string(text) + string(text)), "more than one JSON document"},
		"a trailing line":  {encode(string(text) + "\n"), "not in canonical form"},
		"too long":         {strings.Repeat("A", 8192), "longer than 4096 bytes"},
		"nothing":          {"", "not an identity"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(test.header); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	header, err := Encode(whole())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(header)
	f.Add("e30")
	f.Fuzz(func(t *testing.T, header string) {
		got, err := Decode(header)
		if err != nil {
			return
		}
		again, err := Encode(got)
		if err != nil || again != header {
			t.Errorf("%q was read as %+v, which is written as %q (%v)", header, got, again, err)
		}
	})
}
