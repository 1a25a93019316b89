package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"ptah.run/ptah/qualification/lab"
	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/engine"
	"ptah.run/ptah/qualification/lab/progress"
	"ptah.run/ptah/qualification/lab/source"
)

// NewTestCommand returns `ptah-qualify test`: the repository's own tests with what they need.
func NewTestCommand(streams IOStreams) *cobra.Command {
	options := &testOptions{}
	command := &cobra.Command{
		Use:   "test [packages]",
		Short: "Run the repository's unit, API server and container tests with the race detector",
		Long: `test gets what the tests need (API server and etcd for envtest, the images of PostgreSQL, MySQL and the executor),
then runs "go test -race" with PTAH_TEST_APISERVER=1 and PTAH_TEST_CONTAINERS=1, under which a test that cannot reach
them fails instead of being skipped. It needs Docker and no cluster. Without packages it runs all.`,
		Example: `  ptah-qualify test
  ptah-qualify test ./operator/schema/... ./chart`,
		ValidArgsFunction: completeFolders,
		RunE: func(command *cobra.Command, packages []string) error {
			return runTests(command.Context(), streams, options, packages)
		},
	}
	command.Flags().StringVar(&options.source, "source", source.ModulesName, "where images come from: modules or registry")
	return command
}

type testOptions struct{ source string }

// packageLimit bounds the tests of one package, so that a test that hangs ends. What hangs in a container ends sooner, by its
// silence. The longest package, the executor with its cases and pairs in four containers, was seen to take between eight minutes
// and more than half an hour on machines of two cores, beside the other packages.
const packageLimit = "60m"

func runTests(ctx context.Context, streams IOStreams, options *testOptions, packages []string) error {
	repository, err := lab.FindRepository(".")
	if err != nil {
		return labExit(err)
	}
	images, err := lab.OpenImages(repository, options.source, progress.New(streams.Err))
	if err != nil {
		return labExit(err)
	}
	assets, err := images.Assets(ctx, "")
	if err != nil {
		return labExit(err)
	}
	connection, err := engine.Connect(ctx)
	if err != nil {
		return labExit(err)
	}
	defer func() { _ = connection.Close() }()
	for _, role := range []catalog.Role{catalog.PostgreSQL, catalog.MySQL, catalog.ExecutorBase} {
		if _, err := images.Prepare(ctx, connection, role, ""); err != nil {
			return labExit(err)
		}
	}
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	// One package more at a time than there are processors, because tests that wait for servers leave one idle.
	parallel := strconv.Itoa(runtime.NumCPU() + 1)
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-race", "-p", parallel, "-timeout", packageLimit}, packages...)...)
	command.Dir, command.Stdout, command.Stderr = repository, streams.Out, streams.Err
	// The race detector needs cgo, also where this program itself was built without it.
	command.Env = append(os.Environ(), "CGO_ENABLED=1", "KUBEBUILDER_ASSETS="+assets, "PTAH_TEST_APISERVER=1", "PTAH_TEST_CONTAINERS=1",
		"TESTCONTAINERS_RYUK_DISABLED=true", "TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1",
		// The race detector sleeps a second at the end of each process, and tests start many.
		"GORACE=atexit_sleep_ms=0")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	err = command.Run()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Exit(ExitInterrupted, errors.New("the tests were interrupted; run them again"))
	case errors.As(err, &failed):
		return Exit(ExitProductFailed, errors.New("tests failed; the first FAIL above says which"))
	case err != nil:
		return Exit(ExitHarnessFailed, fmt.Errorf("start go test: %w", err))
	}
	return nil
}
