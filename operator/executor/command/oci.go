package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ptah.run/ptah/operator/artifact"
	"ptah.run/ptah/operator/plan/report"
)

// registryFlags are how a registry is reached; secrets come from the environment only.
type registryFlags struct{ access artifact.Access }

func (f *registryFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.access.Username, "oci-username", "", "registry user (PTAH_OCI_USERNAME); the password is PTAH_OCI_PASSWORD")
	flags.StringVar(&f.access.DockerConfig, "oci-docker-config", "", "file with registry credentials in docker's form (PTAH_OCI_DOCKER_CONFIG)")
	flags.StringVar(&f.access.CAFile, "oci-ca-file", "", "file with the registry's certificate authorities (PTAH_OCI_CA_FILE)")
	flags.BoolVar(&f.access.PlainHTTP, "oci-plain-http", false, "talk to the registry without TLS (PTAH_OCI_PLAIN_HTTP)")
}

func (f *registryFlags) client(getenv func(string) string) (*artifact.Client, error) {
	f.access.Password, f.access.Token = getenv("PTAH_OCI_PASSWORD"), getenv("PTAH_OCI_TOKEN")
	return artifact.NewClient(f.access)
}

func (a *app) ociCommand() *cobra.Command {
	return group("oci", "Work with schema artifacts in a registry", a.ociPush(), a.ociResolve(), a.ociVerify(), a.ociInspect())
}

// with parses a reference and makes a client.
func (a *app) with(text string, f *registryFlags) (*artifact.Client, artifact.Reference, error) {
	ref, err := artifact.ParseReference(text)
	if err != nil {
		return nil, ref, err
	}
	client, err := f.client(a.Getenv)
	return client, ref, err
}

func (a *app) resolved(requested string, info *artifact.Info, err error) error {
	out := report.Resolve{ContractVersion: report.ContractVersion, Outcome: report.OutcomeFound, Reference: requested}
	if err != nil {
		out.Problem = artifact.Problem(err)
		out.Outcome = outcomeOf(out.Problem)
	} else {
		out.PinnedReference, out.Digest, out.MediaType = info.Pinned, info.Digest, info.MediaType
		out.ArtifactType, out.Size, out.Annotations = info.ArtifactType, info.Size, info.Annotations
	}
	return a.write(out.Outcome, out, out.Problem, artifact.Detail(err), func(b *strings.Builder) {
		fmt.Fprintf(b, "%s\n  type %s, %d bytes\n", info.Pinned, info.ArtifactType, info.Size)
		for _, key := range sortedKeys(info.Annotations) {
			fmt.Fprintf(b, "  %s=%s\n", key, info.Annotations[key])
		}
	})
}

func (a *app) ociPush() *cobra.Command {
	var f registryFlags
	var schema string
	var annotations []string
	cmd := &cobra.Command{
		Use:     "push REFERENCE --schema FILE_OR_DIR",
		Short:   "Write a schema as an artifact under a tag",
		Long:    "Write the .sql, .hcl and .rows.yaml files of a schema as one artifact. SQL and HCL load in the order of\ntheir names; all .hcl files together load where the first of them stands. Equal files and annotations have one digest.",
		Example: "  ptah oci push oci://registry.example/shop/schema:v1 --schema ./schema --annotation commit=1a2b3c",
		Args:    oneReference,
		RunE: func(cmd *cobra.Command, args []string) error {
			if schema == "" {
				return usage("--schema is missing: the file or folder to push")
			}
			extra, err := annotationMap(annotations)
			if err != nil {
				return err
			}
			info, err := a.push(cmd.Context(), args[0], schema, extra, &f)
			return a.resolved(args[0], info, err)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&schema, "schema", "", "SQL or HCL file, or folder of .sql, .hcl and .rows.yaml files (PTAH_SCHEMA_DIR)")
	cmd.Flags().StringArrayVar(&annotations, "annotation", nil, "manifest annotation key=value; may be repeated")
	return cmd
}

func (a *app) push(ctx context.Context, text, schema string, annotations map[string]string, f *registryFlags) (*artifact.Info, error) {
	client, ref, err := a.with(text, f)
	if err != nil {
		return nil, err
	}
	files, err := artifact.ReadFiles(schema)
	if err != nil {
		return nil, err
	}
	return client.Push(ctx, ref, files, annotations)
}

func annotationMap(texts []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range texts {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return nil, usage("--annotation %q is not key=value", text)
		}
		if _, twice := out[key]; twice || key == artifact.FormatAnnotation {
			return nil, usage("the annotation %q is given twice or set by ptah itself", key)
		}
		out[key] = value
	}
	return out, nil
}

func (a *app) ociResolve() *cobra.Command {
	return a.reading("resolve REFERENCE", "Find the digest that a tag names now", func(artifact.Reference) error { return nil })
}

func (a *app) ociInspect() *cobra.Command {
	return a.reading("inspect REFERENCE@DIGEST", "Show what a pinned artifact says about itself", func(ref artifact.Reference) error {
		if ref.Digest() == "" {
			return usage("inspect takes a reference with a digest; resolve the tag first")
		}
		return nil
	})
}

// reading makes a command that reads one manifest.
func (a *app) reading(use, short string, check func(artifact.Reference) error) *cobra.Command {
	var f registryFlags
	cmd := &cobra.Command{
		Use: use, Short: short, Args: oneReference,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, ref, err := a.with(args[0], &f)
			if err != nil {
				return a.resolved(args[0], nil, err)
			}
			if err := check(ref); err != nil {
				return err
			}
			info, err := client.Resolve(cmd.Context(), ref)
			return a.resolved(args[0], info, err)
		},
	}
	f.add(cmd)
	return cmd
}

func (a *app) ociVerify() *cobra.Command {
	var f registryFlags
	var policy, requested string
	cmd := &cobra.Command{
		Use:   "verify REFERENCE@DIGEST --policy FILE",
		Short: "Judge a pinned artifact by a verification policy",
		Long: `Judge a pinned artifact by a verification policy. Every requirement is evaluated.

A policy is YAML with version: 1 and at least one of
  require_digest_pin: true          the requested reference is a digest
  artifact_types: [TYPE, ...]       the artifact is of one of these types
  require_annotations: [KEY, ...]   these annotations are not empty
  require_signature: true           a signature refers to the artifact; it is not verified
  signature_artifact_types: [...]   the types that count as signatures`,
		Args: oneReference,
		RunE: func(cmd *cobra.Command, args []string) error {
			if policy == "" {
				return usage("--policy is missing: the file with the verification policy")
			}
			if requested == "" {
				requested = args[0]
			}
			out := report.Verify{ContractVersion: report.ContractVersion, Outcome: report.OutcomeFound, Reference: args[0],
				Satisfied: []string{}, Findings: []report.VerifyFinding{}}
			err := a.verify(cmd.Context(), args[0], requested, policy, &f, &out)
			if err != nil {
				out.Problem = artifact.Problem(err)
				out.Outcome = outcomeOf(out.Problem)
			}
			return a.write(out.Outcome, out, out.Problem, verifyDetail(out, err), func(b *strings.Builder) {
				fmt.Fprintf(b, "%s\n", out.Digest)
				for _, requirement := range out.Satisfied {
					fmt.Fprintf(b, "  %s  %s\n", a.paint(green, "satisfied"), requirement)
				}
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&policy, "policy", "", "file with the verification policy")
	cmd.Flags().StringVar(&requested, "requested", "", "the reference as it was asked for, before it was resolved")
	return cmd
}

func (a *app) verify(ctx context.Context, pinnedText, requestedText, policyFile string, f *registryFlags, out *report.Verify) error {
	file, err := os.Open(filepath.Clean(policyFile))
	if err != nil {
		return &artifact.Error{Code: report.CodeInvalidPolicy, Message: "the verification policy cannot be read", Detail: err.Error()}
	}
	defer func() { _ = file.Close() }()
	policy, digest, err := artifact.ReadPolicy(file)
	out.PolicyDigest = digest
	if err != nil {
		return err
	}
	requested, err := artifact.ParseReference(requestedText)
	if err != nil {
		return err
	}
	client, pinned, err := a.with(pinnedText, f)
	if err != nil {
		return err
	}
	info, verdict, err := client.Verify(ctx, policy, requested, pinned)
	if err != nil {
		return err
	}
	out.Digest, out.ArtifactType = info.Digest, info.ArtifactType
	out.Satisfied, out.Findings = verdict.Satisfied, verdict.Findings
	if n := len(out.Findings); n > 0 {
		return &artifact.Error{Code: report.CodePolicy,
			Message: fmt.Sprintf("the artifact does not meet %d %s of the verification policy", n, plural(n, "requirement"))}
	}
	return nil
}

func verifyDetail(out report.Verify, err error) string {
	var lines []string
	for _, f := range out.Findings {
		lines = append(lines, f.Requirement+": "+f.Detail)
	}
	return strings.Join(append(lines, artifact.Detail(err)), "\n")
}
