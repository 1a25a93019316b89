package artifact

import (
	"context"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	"ptah.run/ptah/operator/plan/report"
)

// MaxPolicyBytes is the largest verification policy that is read.
const MaxPolicyBytes = 1 << 20

// Policy says what an artifact must be before it is used.
type Policy struct {
	Version                int      `json:"version"`
	RequireDigestPin       bool     `json:"require_digest_pin"`
	ArtifactTypes          []string `json:"artifact_types"`
	RequireAnnotations     []string `json:"require_annotations"`
	RequireSignature       bool     `json:"require_signature"`
	SignatureArtifactTypes []string `json:"signature_artifact_types"`
}

// defaultSignatureTypes are the types under which the two common tools attach signatures.
var defaultSignatureTypes = []string{"application/vnd.dev.cosign.artifact.sig.v1+json", "application/vnd.cncf.notary.signature"}

// ParsePolicy reads a policy strictly: version 1, known fields once each, at least one requirement, no empty entry.
func ParsePolicy(data []byte) (*Policy, error) {
	refuse := func(why string) (*Policy, error) {
		return nil, fail(report.CodeInvalidPolicy, "the verification policy "+why)
	}
	if len(data) > MaxPolicyBytes {
		return refuse("is larger than 1 MiB")
	}
	var policy Policy
	if err := yaml.UnmarshalStrict(data, &policy); err != nil {
		return refuse("is not YAML with the fields version, require_digest_pin, artifact_types, require_annotations, require_signature and signature_artifact_types")
	}
	if policy.Version != 1 {
		return refuse("has a version other than 1")
	}
	for _, list := range [][]string{policy.ArtifactTypes, policy.RequireAnnotations, policy.SignatureArtifactTypes} {
		if slices.Contains(list, "") {
			return refuse("has an empty entry in a list")
		}
	}
	if len(policy.SignatureArtifactTypes) > 0 && !policy.RequireSignature {
		return refuse("names signature types and requires no signature")
	}
	if !policy.RequireDigestPin && !policy.RequireSignature && len(policy.ArtifactTypes) == 0 && len(policy.RequireAnnotations) == 0 {
		return refuse("requires nothing; state at least one requirement")
	}
	return &policy, nil
}

// ReadPolicy reads a policy of at most MaxPolicyBytes and returns it with the digest of its bytes.
func ReadPolicy(r io.Reader) (*Policy, string, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxPolicyBytes+1))
	if err != nil {
		return nil, "", fail(report.CodeInvalidPolicy, "the verification policy cannot be read")
	}
	policy, err := ParsePolicy(data)
	return policy, report.Digest(data), err
}

// Verdict is how an artifact meets a policy.
type Verdict struct {
	Satisfied []string
	Findings  []report.VerifyFinding
}

// Verify evaluates every requirement. requested is the reference that a person wrote, which the digest pin is about.
// A signature must exist; it is not verified.
func (c *Client) Verify(ctx context.Context, policy *Policy, requested, pinned Reference) (*Info, *Verdict, error) {
	if pinned.Digest() == "" {
		return nil, nil, fail(report.CodeInvalidInput, "an artifact is verified by digest; resolve the tag first")
	}
	if requested.ref.Context().Name() != pinned.ref.Context().Name() {
		return nil, nil, fail(report.CodeInvalidInput, "the requested and the pinned reference name different repositories")
	}
	if requested.Digest() != "" && requested.Digest() != pinned.Digest() {
		return nil, nil, fail(report.CodeInvalidInput, "the requested and the pinned reference have different digests")
	}
	info, err := c.Resolve(ctx, pinned)
	if err != nil {
		return nil, nil, err
	}
	v := &Verdict{Satisfied: []string{}, Findings: []report.VerifyFinding{}}
	if policy.RequireDigestPin {
		v.judge("require_digest_pin", requested.Digest() != "", "the requested reference is a tag")
	}
	if len(policy.ArtifactTypes) > 0 {
		v.judge("artifact_types", slices.Contains(policy.ArtifactTypes, info.ArtifactType),
			fmt.Sprintf("the artifact's type is %q", info.ArtifactType))
	}
	for _, key := range policy.RequireAnnotations {
		v.judge("require_annotations:"+key, info.Annotations[key] != "", "the annotation is missing or empty")
	}
	if policy.RequireSignature {
		if err := c.verifySignature(ctx, policy, pinned, v); err != nil {
			return nil, nil, err
		}
	}
	return info, v, nil
}

func (c *Client) verifySignature(ctx context.Context, policy *Policy, pinned Reference, v *Verdict) error {
	wanted := policy.SignatureArtifactTypes
	if len(wanted) == 0 {
		wanted = defaultSignatureTypes
	}
	referrers, err := c.Referrers(ctx, pinned)
	if err != nil {
		return err
	}
	found := slices.ContainsFunc(referrers, func(t string) bool { return slices.Contains(wanted, t) })
	v.judge("require_signature", found, "no signature refers to the artifact")
	return nil
}

func (v *Verdict) judge(requirement string, met bool, detail string) {
	if met {
		v.Satisfied = append(v.Satisfied, requirement)
		return
	}
	v.Findings = append(v.Findings, report.VerifyFinding{Requirement: requirement, Detail: detail})
}
