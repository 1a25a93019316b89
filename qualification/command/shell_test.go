package command

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/evidence/dossier/dossiertest"
)

// asCommand makes a test process ptah-qualify.
const asCommand = "PTAH_TEST_AS_COMMAND"

// TestCommandProcess is ptah-qualify where another test started it, and nothing otherwise.
func TestCommandProcess(*testing.T) {
	at := slices.Index(os.Args, "--")
	if os.Getenv(asCommand) == "" || at < 0 {
		return
	}
	root := NewRootCommand(IOStreams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	root.SetArgs(os.Args[at+1:])
	os.Exit(ExitCode(root.Execute())) //nolint:forbidigo // this test is the main function of its process
}

// completing presses the tabulator in a bash with the completion script loaded. The one function that the script takes
// from the package bash-completion is written out, so that nothing has to be installed.
const completing = `
_get_comp_words_by_ref() { cur=${COMP_WORDS[COMP_CWORD]}; prev=${COMP_WORDS[COMP_CWORD-1]}; words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; }
compopt() { :; }
source <(ptah-qualify completion bash)
complete -p ptah-qualify >/dev/null
for COMP_LINE in "$@"; do
  read -ra COMP_WORDS <<<"$COMP_LINE"
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; COMP_KEY=9; COMPREPLY=()
  __start_ptah-qualify
  echo "${COMPREPLY[*]}"
done
`

func TestABashCompletesCommandsFlagsAndValues(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("not-run: there is no bash")
	}
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nGORACE=atexit_sleep_ms=0 %s=1 exec %q -test.run '^TestCommandProcess$' -- \"$@\"\n", asCommand, os.Args[0])
	if err := os.WriteFile(filepath.Join(folder, "ptah-qualify"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	noLabs(t)
	run := dossiertest.Passing(t).Store(t)
	cases := []struct{ typed, want string }{
		{"rec", "record"},
		{"record ver", "verify"},
		{"record verify --acc", "--acceptance"},
		{"gate --depth pull", "pull-request"},
		{"gate --profile prod", "production"},
		{"gate --matrix rest", "restore"},
		{"profile lint dev", "development"},
		{"matrix plan cap", "capacity"},
		{"doctor --for q", "quickstart"},
		{"quickstart --until inst", "install"},
		{"lab images --role load", "load-balancer"},
		{"lab up --kubernetes 1.3", "1.35 1.36 1.37"},
		{"record key generate --algorithm ec", "ecdsa"},
		{"run --labs o", "own"},
		{"run --labs own --source reg", "registry"},
		{"status --format j", "json"},
		{"audit count --run " + run + " --cell d", "data-plane.kubernetes-1.37.postgresql-17"},
		{"completion z", "zsh"},
		{"lab list --format xml", ""},
	}
	arguments := []string{"--norc", "--noprofile", "-c", completing, "bash"}
	for _, test := range cases {
		arguments = append(arguments, "ptah-qualify "+test.typed)
	}
	command := exec.Command(bash, arguments...)
	command.Dir = sourceTree(t)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	offered := strings.Split(string(output), "\n")
	if err != nil || len(offered) != len(cases)+1 {
		t.Fatalf("%v: %q; %s", err, output, problems.String())
	}
	for i, test := range cases {
		if got := strings.Join(strings.Fields(offered[i]), " "); got != test.want {
			t.Errorf("%s: %q, want %q; %s", test.typed, got, test.want, problems.String())
		}
	}
}
