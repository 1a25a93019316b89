package command

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a command as main would and returns its exit code and what it wrote.
func runCommand(t *testing.T, constructor func(IOStreams) interface {
	SetArgs([]string)
	ExecuteContext(context.Context) error
}, arguments ...string) (code int, out, message string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := constructor(IOStreams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	command.SetArgs(arguments)
	err := command.ExecuteContext(context.Background())
	if err != nil {
		message = err.Error()
	}
	return ExitCode(err), stdout.String(), message
}

func labCommand(streams IOStreams) interface {
	SetArgs([]string)
	ExecuteContext(context.Context) error
} {
	command := NewLabCommand(streams)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetOut(streams.Out)
	command.SetErr(streams.Err)
	return command
}

func doctorCommand(streams IOStreams) interface {
	SetArgs([]string)
	ExecuteContext(context.Context) error
} {
	command := NewDoctorCommand(streams)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetOut(streams.Out)
	command.SetErr(streams.Err)
	return command
}

func isolate(t *testing.T) (state string) {
	t.Helper()
	state = t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(t.TempDir(), "docker.sock"))
	return state
}

func TestLabCommandsEndWithTheDocumentedCodes(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		code      int
		says      string
	}{
		"up without an engine":            {[]string{"up"}, ExitHarnessFailed, "doctor --fix"},
		"images without an engine":        {[]string{"images"}, ExitHarnessFailed, "doctor --fix"},
		"an unknown Kubernetes":           {[]string{"up", "--kubernetes", "1.2"}, ExitUsage, "1.37"},
		"two control planes":              {[]string{"up", "--control-planes", "2"}, ExitUsage, "1 or 3"},
		"an unusable id":                  {[]string{"down", "--id", "A"}, ExitUsage, "not usable"},
		"assets of an unknown version":    {[]string{"assets", "--kubernetes", "9"}, ExitUsage, "1.37"},
		"a version without a role":        {[]string{"images", "--version", "17"}, ExitUsage, "--role"},
		"an unknown source":               {[]string{"images", "--source", "moon"}, ExitUsage, "modules or registry"},
		"a repository that is none":       {[]string{"images", "--repository", "/nonexistent"}, ExitHarnessFailed, "image catalogue"},
		"an unknown flag":                 {[]string{"up", "--nodes", "3"}, ExitUsage, "--nodes"},
		"a format that is none":           {[]string{"list", "--format", "xml"}, ExitUsage, "text or json"},
		"logs of a lab without an engine": {[]string{"logs"}, ExitHarnessFailed, "doctor --fix"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			state := isolate(t)
			code, out, message := runCommand(t, labCommand, c.arguments...)
			if code != c.code || !strings.Contains(message, c.says) || strings.Contains(message, "\n") {
				t.Errorf("code %d, %q", code, message)
			}
			if entries, _ := os.ReadDir(state); len(entries) != 0 || out != "" {
				t.Errorf("wrote %v and %q", entries, out)
			}
		})
	}
}

func TestDownOfNothingSaysSoAndPasses(t *testing.T) {
	isolate(t)
	code, out, _ := runCommand(t, labCommand, "down")
	if code != ExitPass || out != "there is no lab lab\n" {
		t.Errorf("code %d, %q", code, out)
	}
}

func TestAnEmptyListIsEmptyInBothFormats(t *testing.T) {
	isolate(t)
	if code, out, _ := runCommand(t, labCommand, "list"); code != ExitPass || out != "" {
		t.Errorf("code %d, %q", code, out)
	}
	if code, out, _ := runCommand(t, labCommand, "list", "--format", "json"); code != ExitPass || out != "[]\n" {
		t.Errorf("code %d, %q", code, out)
	}
}

func TestTheDoctorNamesWhatIsMissingAndChangesNothing(t *testing.T) {
	state := isolate(t)
	code, out, message := runCommand(t, doctorCommand, "--for", "test")
	if code != ExitHarnessFailed || !strings.Contains(out, "missing Docker engine") || !strings.Contains(message, "Docker engine") {
		t.Errorf("code %d, %q, %q", code, out, message)
	}
	if entries, _ := os.ReadDir(state); len(entries) != 0 {
		t.Errorf("wrote %v", entries)
	}
	if code, _, message := runCommand(t, doctorCommand, "--for", "fun"); code != ExitUsage || !strings.Contains(message, "test, lab or quickstart") {
		t.Errorf("an unknown purpose: code %d, %q", code, message)
	}
	if code, _, _ := runCommand(t, doctorCommand, "--fix", "--stop-engine"); code != ExitUsage {
		t.Errorf("fix and stop together: code %d", code)
	}
	if code, out, _ := runCommand(t, doctorCommand, "--stop-engine"); code != ExitPass || !strings.Contains(out, "no Docker engine started") {
		t.Errorf("stopping nothing: code %d, %q", code, out)
	}
}

func TestErrorsCarryTheirExitCode(t *testing.T) {
	cases := map[string]struct {
		err  error
		code int
	}{
		"nothing":           {nil, ExitPass},
		"an exit":           {Exit(ExitVerificationFailed, errors.New("x")), ExitVerificationFailed},
		"a wrapped exit":    {errors.Join(errors.New("y"), Exit(ExitNotEstablished, errors.New("x"))), ExitNotEstablished},
		"an interruption":   {context.Canceled, ExitInterrupted},
		"a word of cobra's": {errors.New("unknown flag"), ExitUsage},
	}
	for name, c := range cases {
		if got := ExitCode(c.err); got != c.code {
			t.Errorf("%s gives %d, want %d", name, got, c.code)
		}
	}
	if Exit(ExitUsage, nil) != nil {
		t.Error("no error became one")
	}
}
