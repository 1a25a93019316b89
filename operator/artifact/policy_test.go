package artifact

import (
	"slices"
	"testing"

	"ptah.run/ptah/operator/plan/report"
)

func TestParsePolicy(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		good bool
	}{
		"everything":                  {"version: 1\nrequire_digest_pin: true\nartifact_types: [a]\nrequire_annotations: [b]\nrequire_signature: true\nsignature_artifact_types: [c]\n", true},
		"one requirement":             {"version: 1\nartifact_types: [a]\n", true},
		"another version":             {"version: 2\nartifact_types: [a]\n", false},
		"no version":                  {"artifact_types: [a]\n", false},
		"an unknown field":            {"version: 1\nartifact_types: [a]\nprotectedTables: [t]\n", false},
		"a repeated field":            {"version: 1\nartifact_types: [a]\nartifact_types: [b]\n", false},
		"no requirement":              {"version: 1\n", false},
		"an empty entry":              {"version: 1\nartifact_types: ['']\n", false},
		"signature types for nothing": {"version: 1\nartifact_types: [a]\nsignature_artifact_types: [c]\n", false},
		"a list where a word belongs": {"version: [1]\nartifact_types: [a]\n", false},
		"nothing":                     {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := ParsePolicy([]byte(test.text))
			if test.good != (err == nil) {
				t.Fatalf("%v", err)
			}
			if err != nil && code(t, err) != report.CodeInvalidPolicy {
				t.Errorf("%v", err)
			}
			if err == nil && policy.Version != 1 {
				t.Errorf("%+v", policy)
			}
		})
	}
	if _, err := ParsePolicy(make([]byte, MaxPolicyBytes+1)); code(t, err) != report.CodeInvalidPolicy {
		t.Errorf("a policy that is too large: %v", err)
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("version: 1\nartifact_types: [a]\n"))
	f.Add([]byte("version: 1\nrequire_signature: true\nsignature_artifact_types: [c]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policy, err := ParsePolicy(data)
		if err != nil {
			return
		}
		if policy.Version != 1 || !policy.RequireDigestPin && !policy.RequireSignature && len(policy.ArtifactTypes)+len(policy.RequireAnnotations) == 0 {
			t.Fatalf("a policy without a requirement was accepted: %+v", policy)
		}
	})
}

func TestVerifyEvaluatesEveryRequirement(t *testing.T) {
	b := newBench(t, true)
	c := b.client(t, Access{})
	info, err := c.Push(t.Context(), b.ref(t, ":v1"), example, map[string]string{"team": "shop", "empty": ""})
	if err != nil {
		t.Fatal(err)
	}
	pinned := b.ref(t, "@"+info.Digest)
	verify := func(requested Reference, policy Policy) *Verdict {
		t.Helper()
		_, v, err := c.Verify(t.Context(), &policy, requested, pinned)
		if err != nil {
			t.Fatal(err, Detail(err))
		}
		return v
	}
	bad := verify(b.ref(t, ":v1"), Policy{Version: 1, RequireDigestPin: true, ArtifactTypes: []string{"x"}, RequireAnnotations: []string{"team", "empty", "absent"}, RequireSignature: true})
	if want := []string{"require_annotations:team"}; !slices.Equal(bad.Satisfied, want) {
		t.Errorf("satisfied: %v", bad.Satisfied)
	}
	if len(bad.Findings) != 5 {
		t.Errorf("findings: %v", bad.Findings)
	}
	good := Policy{Version: 1, RequireDigestPin: true, ArtifactTypes: []string{SchemaType}, RequireSignature: true}
	if v := verify(pinned, good); len(v.Findings) != 1 || v.Findings[0].Requirement != "require_signature" {
		t.Errorf("findings without a signature: %v", v.Findings)
	}
	sign(t, b, c, info, defaultSignatureTypes[0])
	if v := verify(pinned, good); len(v.Findings) != 0 || len(v.Satisfied) != 3 {
		t.Errorf("findings with a signature: %+v", v)
	}
	good.SignatureArtifactTypes = []string{"application/other"}
	if v := verify(pinned, good); len(v.Findings) != 1 {
		t.Errorf("a signature of another type counts: %+v", v)
	}
}

func sign(t *testing.T, b *bench, c *Client, info *Info, kind string) {
	t.Helper()
	m := map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": kind,
		"config": map[string]any{"mediaType": emptyConfigType, "size": 2, "digest": report.Digest([]byte("{}"))}, "layers": []any{},
		"subject": map[string]any{"mediaType": info.MediaType, "digest": info.Digest, "size": 100}}
	b.put(t, c, m)
}

func TestVerifyRefusesReferencesThatDoNotBelongTogether(t *testing.T) {
	b := newBench(t, true)
	c := b.client(t, Access{})
	policy := &Policy{Version: 1, RequireDigestPin: true}
	digest := report.Digest([]byte("x"))
	other, err := ParseReference(b.host() + "/shop/other:v1")
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]Reference{
		"another repository": {other, b.ref(t, "@"+digest)},
		"another digest":     {b.ref(t, "@"+report.Digest(nil)), b.ref(t, "@"+digest)},
		"a tag":              {b.ref(t, ":v1"), b.ref(t, ":v1")},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := c.Verify(t.Context(), policy, pair[0], pair[1]); code(t, err) != report.CodeInvalidInput {
				t.Errorf("%v", err)
			}
		})
	}
}
