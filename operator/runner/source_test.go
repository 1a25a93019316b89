package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/operator/operation/env"
	"ptah.run/ptah/operator/operation/result"
	"ptah.run/ptah/operator/plan/report"
)

func TestSourceHandsItsResultToTheDatabaseContainer(t *testing.T) {
	b := sourceBench(t)
	b.wantExit(b.run("source"), ExitDone)
	b.wantCommands("oci resolve", "oci verify", "schema pull")
	if len(b.post.requests) != 0 {
		t.Errorf("a source that succeeded asked the receiver: %v", b.post.requests)
	}
	data, err := os.ReadFile(filepath.Join(b.dir, "work", "source-result.json"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := result.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if document.Failed() != nil || document.Resolve.Digest != artifact || len(document.Steps) != 3 {
		t.Errorf("handed over %s", data)
	}
}

func TestRegistryChildrenSeeTheRegistryCredentialAndNothingElse(t *testing.T) {
	b := sourceBench(t)
	b.wantExit(b.run("source"), ExitDone)
	for _, one := range b.calls() {
		names := []string{}
		for _, variable := range one.Environment {
			name, _, _ := strings.Cut(variable, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		if want := []string{"PATH", env.OCIPassword, env.OCIUsername, "TMPDIR"}; !slices.Equal(names, want) {
			t.Errorf("ptah %s saw %v, want %v", one.command(), names, want)
		}
		if strings.Contains(strings.Join(one.Arguments, " "), "registry-password") {
			t.Errorf("ptah %s has the password in its command line", one.command())
		}
	}
}

func TestSourceChecksItsConfigurationBeforeAnythingStarts(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*bench)
		code    result.ErrorCode
		message string
	}{
		"another protocol": {func(b *bench) { b.env[env.ProtocolVersion] = "9" }, result.ErrorProtocolMismatch, `the manager speaks runner protocol "9" and this runner speaks 1`},
		"no protocol":      {func(b *bench) { delete(b.env, env.ProtocolVersion) }, result.ErrorProtocolMismatch, "install runner and manager of one release"},
		"the protocol is checked before the rest": {func(b *bench) {
			b.env[env.ProtocolVersion] = "9"
			delete(b.env, env.RequestedReference)
		}, result.ErrorProtocolMismatch, "protocol"},
		"no reference":                  {func(b *bench) { delete(b.env, env.RequestedReference) }, result.ErrorInvalidConfiguration, "PTAH_REQUESTED_REFERENCE is missing"},
		"no policy file":                {func(b *bench) { delete(b.env, env.VerificationPolicy) }, result.ErrorInvalidConfiguration, "PTAH_VERIFICATION_POLICY is missing"},
		"a malformed policy digest":     {func(b *bench) { b.env[env.ExpectedPolicyDigest] = "sha256:x" }, result.ErrorInvalidConfiguration, "PTAH_EXPECTED_POLICY_DIGEST is not a sha256 digest"},
		"a grace of nothing":            {func(b *bench) { b.env[env.TerminationGraceSecs] = "0" }, result.ErrorInvalidConfiguration, "must be between 3 and 300"},
		"a database URL beside":         {func(b *bench) { b.env[env.DatabaseURL] = databaseURL }, result.ErrorInvalidConfiguration, "a database URL is set in the container that holds the registry credential"},
		"another policy":                {func(b *bench) { b.write("policy", "version: 1\nrequire_digest_pin: true\n") }, result.ErrorPolicyMismatch, "and the operation was claimed with"},
		"an empty policy":               {func(b *bench) { b.write("policy", "") }, result.ErrorPolicyMismatch, "the verification policy: the file is empty"},
		"a policy that is a folder":     {func(b *bench) { b.env[env.VerificationPolicy] = b.dir }, result.ErrorPolicyMismatch, "it is not a regular file"},
		"a reference without authority": {func(b *bench) { b.env[env.RequestedReference] = "oci://orders" }, result.ErrorInvalidAccess, "does not name a registry and a repository"},
		"a reference by short name":     {func(b *bench) { b.env[env.RequestedReference] = "oci://library/orders:1" }, result.ErrorInvalidAccess, "does not begin with the host of a registry"},
	} {
		t.Run(name, func(t *testing.T) {
			b := sourceBench(t)
			test.change(b)
			b.wantExit(b.run("source"), ExitFailed)
			b.wantError(result.StepResolve, test.code, test.message)
			b.wantCommands()
		})
	}
}

const exampleCA = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

func TestRegistryGrantsAreCheckedBeforeAnythingIsContacted(t *testing.T) {
	docker := func(content string) func(*bench) {
		return func(b *bench) {
			b.env[env.AuthMode] = "DockerConfigJSON"
			delete(b.env, env.OCIUsername)
			delete(b.env, env.OCIPassword)
			b.env[env.OCIDockerConfig] = b.write("config.json", content)
		}
	}
	anonymous := func(b *bench) {
		for _, name := range []string{env.AuthMode, env.AuthRegistryGrant, env.OCIUsername, env.OCIPassword} {
			delete(b.env, name)
		}
	}
	withCA := func(content string) func(*bench) {
		return func(b *bench) {
			b.env[env.OCICAFile] = b.write("ca.crt", content)
			b.env[env.AuthCADigestGrant] = report.Digest([]byte(content))
		}
	}
	for name, test := range map[string]struct {
		changes []func(*bench)
		message string // empty where it is allowed
	}{
		"granted for this registry":                     {nil, ""},
		"no grant":                                      {[]func(*bench){func(b *bench) { delete(b.env, env.AuthRegistryGrant) }}, `has no key "registry"`},
		"granted for another registry":                  {[]func(*bench){func(b *bench) { b.env[env.AuthRegistryGrant] = "other.example:5000" }}, "is granted for other.example:5000, and the reference names registry.example:5000"},
		"granted for another port":                      {[]func(*bench){func(b *bench) { b.env[env.AuthRegistryGrant] = "registry.example" }}, "is granted for registry.example, and"},
		"granted for a URL":                             {[]func(*bench){func(b *bench) { b.env[env.AuthRegistryGrant] = "https://registry.example:5000" }}, "is not a lowercase host[:port]"},
		"plain HTTP with a credential":                  {[]func(*bench){func(b *bench) { b.env[env.OCIPlainHTTP] = "true" }}, "may not be sent over plain HTTP"},
		"plain HTTP granted by another word":            {[]func(*bench){func(b *bench) { b.env[env.OCIPlainHTTP], b.env[env.AuthAllowPlainHTTP] = "true", "yes" }}, "may not be sent over plain HTTP"},
		"plain HTTP granted":                            {[]func(*bench){func(b *bench) { b.env[env.OCIPlainHTTP], b.env[env.AuthAllowPlainHTTP] = "true", "true" }}, ""},
		"a malformed plain HTTP":                        {[]func(*bench){func(b *bench) { b.env[env.OCIPlainHTTP] = "maybe" }}, "PTAH_OCI_PLAIN_HTTP must be true or false"},
		"plain HTTP without a credential":               {[]func(*bench){anonymous, func(b *bench) { b.env[env.OCIPlainHTTP] = "true" }}, ""},
		"plain HTTP and an authority":                   {[]func(*bench){withCA(exampleCA), func(b *bench) { b.env[env.OCIPlainHTTP] = "true" }}, "exclude each other"},
		"an authority granted":                          {[]func(*bench){withCA(exampleCA)}, ""},
		"an authority not granted":                      {[]func(*bench){withCA(exampleCA), func(b *bench) { delete(b.env, env.AuthCADigestGrant) }}, `"caSHA256" is not sha256:`},
		"another authority granted":                     {[]func(*bench){withCA(exampleCA), func(b *bench) { b.env[env.AuthCADigestGrant] = artifact }}, `"caSHA256" is not sha256:`},
		"an authority without a credential":             {[]func(*bench){anonymous, withCA(exampleCA), func(b *bench) { delete(b.env, env.AuthCADigestGrant) }}, ""},
		"an authority with a key":                       {[]func(*bench){withCA(exampleCA + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")}, "only certificates belong there"},
		"an authority that is none":                     {[]func(*bench){withCA("hello")}, "holds no PEM certificate"},
		"an authority too large":                        {[]func(*bench){withCA(strings.Repeat("x", maxCABytes+1))}, "larger than 1048576 bytes"},
		"no credential":                                 {[]func(*bench){anonymous}, ""},
		"a grant without a credential":                  {[]func(*bench){anonymous, func(b *bench) { b.env[env.AuthRegistryGrant] = "registry.example:5000" }}, "set without an authentication mode"},
		"a plain HTTP grant without a credential":       {[]func(*bench){anonymous, func(b *bench) { b.env[env.AuthAllowPlainHTTP] = "true" }}, "set without an authentication mode"},
		"a password without a mode":                     {[]func(*bench){anonymous, func(b *bench) { b.env[env.OCIPassword] = "x" }}, "set without an authentication mode"},
		"an unknown mode":                               {[]func(*bench){func(b *bench) { b.env[env.AuthMode] = "Magic" }}, `authentication mode "Magic" is not known`},
		"a user without a password":                     {[]func(*bench){func(b *bench) { b.env[env.OCIPassword] = "" }}, "neither a token nor a user with password"},
		"a token and a password":                        {[]func(*bench){func(b *bench) { b.env[env.OCIToken] = "t" }}, "both a token and a user with password"},
		"a docker configuration for it":                 {[]func(*bench){docker(`{"auths":{"https://registry.example:5000/v1/":{"auth":"eDp5"}}}`)}, ""},
		"a docker configuration for another":            {[]func(*bench){docker(`{"auths":{"registry.example":{"auth":"eDp5"}}}`)}, "has no credential for registry.example:5000"},
		"a docker configuration with a helper":          {[]func(*bench){docker(`{"credsStore":"desktop","auths":{"registry.example:5000":{}}}`)}, "names a credential helper"},
		"a docker configuration with a registry helper": {[]func(*bench){docker(`{"credHelpers":{"x":"y"},"auths":{"registry.example:5000":{}}}`)}, "names a credential helper"},
		"a docker configuration that is none":           {[]func(*bench){docker(`[]`)}, "is not JSON of a docker configuration"},
		"no docker configuration":                       {[]func(*bench){func(b *bench) { b.env[env.AuthMode] = "DockerConfigJSON" }}, "no docker configuration is mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			b := sourceBench(t)
			for _, change := range test.changes {
				change(b)
			}
			code := b.run("source")
			if test.message == "" {
				b.wantExit(code, ExitDone)
				return
			}
			b.wantExit(code, ExitFailed)
			b.wantError(result.StepResolve, result.ErrorInvalidAccess, test.message)
			b.wantCommands()
		})
	}
}

func TestTheRegistryChildUsesACopyOfTheCheckedAuthority(t *testing.T) {
	b := sourceBench(t)
	b.env[env.OCICAFile] = b.write("ca.crt", exampleCA)
	b.env[env.AuthCADigestGrant] = report.Digest([]byte(exampleCA))
	b.wantExit(b.run("source"), ExitDone)
	copied := filepath.Join(b.dir, "work", "registry-ca.pem")
	for _, one := range b.calls() {
		if !slices.Contains(one.Environment, env.OCICAFile+"="+copied) {
			t.Errorf("ptah %s saw %v, want the copy %s", one.command(), one.Environment, copied)
		}
	}
	info, err := os.Stat(copied)
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("the copy: %v, mode %v", err, info.Mode())
	}
}

func TestNothingDownstreamOfASourceRefusalRuns(t *testing.T) {
	refused := func(code report.Code) *report.Problem { return &report.Problem{Code: code, Message: "no"} }
	for name, test := range map[string]struct {
		change  func(*bench)
		step    result.StepName
		code    result.ErrorCode
		message string
		ran     []string
	}{
		"the registry refuses": {func(b *bench) {
			edit(b, "oci resolve", func(r *report.Resolve) {
				r.Outcome, r.Problem = report.OutcomeFailed, refused(report.CodeAuthentication)
			})
		}, result.StepResolve, result.ErrorPtah, "no", []string{"oci resolve"}},
		"another digest than pinned": {func(b *bench) {
			b.env[env.RequestedReference] = "oci://registry.example:5000/shop/orders@" + state
		}, result.StepResolve, result.ErrorExecution, "another digest than the reference has", []string{"oci resolve"}},
		"another registry": {func(b *bench) {
			edit(b, "oci resolve", func(r *report.Resolve) { r.PinnedReference = "evil.example/shop/orders@" + artifact })
		}, result.StepResolve, result.ErrorExecution, "a reference to another registry", []string{"oci resolve"}},
		"no digest": {func(b *bench) {
			edit(b, "oci resolve", func(r *report.Resolve) { r.Digest = "" })
		}, result.StepResolve, result.ErrorExecution, "named no digest", []string{"oci resolve"}},
		"the policy refuses": {func(b *bench) {
			edit(b, "oci verify", func(r *report.Verify) { r.Outcome, r.Problem = report.OutcomeRefused, refused(report.CodePolicy) })
		}, result.StepVerify, result.ErrorPtah, "no", []string{"oci resolve", "oci verify"}},
		"another policy was used": {func(b *bench) {
			edit(b, "oci verify", func(r *report.Verify) { r.PolicyDigest = state })
		}, result.StepVerify, result.ErrorPolicyMismatch, "used the policy", []string{"oci resolve", "oci verify"}},
		"another artifact was verified": {func(b *bench) {
			edit(b, "oci verify", func(r *report.Verify) { r.Digest = state })
		}, result.StepVerify, result.ErrorExecution, "looked at another artifact", []string{"oci resolve", "oci verify"}},
		"findings beside success": {func(b *bench) {
			edit(b, "oci verify", func(r *report.Verify) { r.Findings = []report.VerifyFinding{{Requirement: "x", Detail: "y"}} })
		}, result.StepVerify, result.ErrorExecution, "success with 1 findings", []string{"oci resolve", "oci verify"}},
		"nothing was required": {func(b *bench) {
			edit(b, "oci verify", func(r *report.Verify) { r.Satisfied = nil })
		}, result.StepVerify, result.ErrorExecution, "without a requirement that is met", []string{"oci resolve", "oci verify"}},
		"another artifact was fetched": {func(b *bench) {
			edit(b, "schema pull", func(r *report.Pull) { r.Digest = state })
		}, result.StepFetch, result.ErrorExecution, "fetched another artifact", []string{"oci resolve", "oci verify", "schema pull"}},
		"files are missing": {func(b *bench) {
			edit(b, "schema pull", func(r *report.Pull) { r.Files = 2 })
		}, result.StepFetch, result.ErrorExecution, "left 1 files and reported 2", []string{"oci resolve", "oci verify", "schema pull"}},
		"success with another exit code": {func(b *bench) {
			told := b.script["schema pull"]
			told.Exit = 1
			b.script["schema pull"] = told
		}, result.StepFetch, result.ErrorExecution, "reported success but ended with exit code 1", []string{"oci resolve", "oci verify", "schema pull"}},
		"the folder exists": {func(b *bench) {
			if err := os.Mkdir(filepath.Join(b.dir, "work", "source"), 0o755); err != nil {
				panic(err)
			}
		}, result.StepFetch, result.ErrorExecution, "the folder for the artifact could not be made", []string{"oci resolve", "oci verify"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := sourceBench(t)
			test.change(b)
			b.wantExit(b.run("source"), ExitFailed)
			b.wantError(test.step, test.code, test.message)
			b.wantCommands(test.ran...)
			if _, err := os.Stat(filepath.Join(b.dir, "work", "source-result.json")); err == nil {
				t.Error("a failed source handed over a result")
			}
		})
	}
}

func TestOnlyAReportIsBelieved(t *testing.T) {
	for name, test := range map[string]struct {
		told    answer
		message string
	}{
		"no report":                  {answer{Exit: 1}, "ended with exit code 1 and wrote no report"},
		"no report with exit code 0": {answer{}, "ended with exit code 0 and wrote no report"},
		"a usage error":              {answer{Exit: 2, Stderr: "ptah: unknown flag --requested\nmore"}, "did not understand its command line: ptah: unknown flag --requested"},
		"words instead of JSON":      {answer{Raw: "resolved!"}, "it is not a JSON report"},
		"two reports":                {answer{Raw: `{"contractVersion":1,"outcome":"found"} {}`}, "more than one document was written"},
		"another contract":           {answer{Raw: `{"contractVersion":2,"outcome":"found"}`}, "its contract version is 2, not 1"},
		"an unknown outcome":         {answer{Raw: `{"contractVersion":1,"outcome":"fine"}`}, `its outcome "fine" is not one of this command`},
		"another command's outcome":  {answer{Raw: `{"contractVersion":1,"outcome":"applied"}`}, `its outcome "applied" is not one of this command`},
		"a failure without a reason": {answer{Raw: `{"contractVersion":1,"outcome":"failed"}`, Exit: 1}, "it names no problem"},
		"an unknown problem code":    {answer{Raw: `{"contractVersion":1,"outcome":"failed","problem":{"code":"odd","message":"x"}}`, Exit: 1}, `its problem code "odd" is not known`},
		"a problem beside success":   {answer{Raw: `{"contractVersion":1,"outcome":"found","problem":{"code":"internal","message":"x"}}`}, "a problem beside a success"},
		"an endless report":          {answer{Raw: strings.Repeat(" ", maxReportBytes+1)}, "wrote a report of more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := sourceBench(t)
			b.script["oci resolve"] = test.told
			b.wantExit(b.run("source"), ExitFailed)
			b.wantError(result.StepResolve, result.ErrorExecution, test.message)
			b.wantCommands("oci resolve")
		})
	}
}

func TestAProgramThatCannotBeStartedIsAFailure(t *testing.T) {
	b := sourceBench(t)
	if err := os.Remove(filepath.Join(b.dir, "ptah")); err != nil {
		t.Fatal(err)
	}
	b.wantExit(b.run("source"), ExitFailed)
	b.wantError(result.StepResolve, result.ErrorExecution, "ptah could not be started")
}

func TestACommandLineNeverHoldsACredential(t *testing.T) {
	b := sourceBench(t)
	b.env[env.RequestedReference] = "oci://registry.example:5000/shop/registry-password:1"
	b.wantExit(b.run("source"), ExitFailed)
	document := b.wantError(result.StepResolve, result.ErrorExecution, "a command line would have held a credential")
	b.wantCommands()
	if document.Resolve != nil {
		t.Error("the document has evidence of a step that did not run")
	}
}

func TestAnApplyHasNoSourceContainer(t *testing.T) {
	b := applyBench(t)
	b.wantExit(b.run("source"), ExitFailed)
	b.wantError(result.StepApply, result.ErrorInvalidConfiguration, "an Apply has no source container")
	b.wantCommands()
}
