package command

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newTree() *cobra.Command {
	return NewRootCommand(IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
}

var (
	exampleCall = regexp.MustCompile(`ptah-qualify ([^\n]*)`)
	shellWord   = regexp.MustCompile(`"[^"]*"|[^\s"]+`)
	callEnd     = regexp.MustCompile(`\)| \| | > | +# `) // of a substitution, a pipe, a redirection, and before a remark
)

// calls are the command lines of ptah-qualify in an example, as words.
func calls(example string) [][]string {
	var found [][]string
	for _, match := range exampleCall.FindAllStringSubmatch(strings.ReplaceAll(example, "\\\n", " "), -1) {
		call := match[1]
		if at := callEnd.FindStringIndex(call); at != nil {
			call = call[:at[0]]
		}
		var words []string
		for _, word := range shellWord.FindAllString(call, -1) {
			words = append(words, strings.Trim(word, `"`))
		}
		found = append(found, words)
	}
	return found
}

// unhelpful says what a stranger would miss in the help of a command.
func unhelpful(command *cobra.Command) []string {
	var found []string
	miss := func(broken bool, format string, arguments ...any) {
		if broken {
			found = append(found, command.CommandPath()+": "+fmt.Sprintf(format, arguments...))
		}
	}
	miss(command.Short == "" || strings.HasSuffix(command.Short, ".") || len(command.Short) > 100, "its summary is %q", command.Short)
	miss(len(command.Long) < 60, "its help says nothing but %q", command.Long)
	for line := range strings.Lines(command.Long) {
		miss(len(line) > 125 || strings.Contains(line, "\t"), "it has the line %q", line)
	}
	list := calls(command.Example)
	miss(len(list) == 0, "it has no example")
	for _, call := range list {
		miss(!strings.HasPrefix("ptah-qualify "+strings.Join(call, " ")+" ", command.CommandPath()+" "), "its example calls %q", call)
		if err := understood(newTree(), call); err != nil {
			miss(true, "its example %q is refused: %v", call, err)
		}
	}
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		miss(len(flag.Usage) < 4 || strings.HasSuffix(flag.Usage, "."), "--%s says %q", flag.Name, flag.Usage)
	})
	return found
}

func TestEveryCommandSaysWhatItDoesAndHowItIsCalled(t *testing.T) {
	count := 0
	each(newTree(), func(command *cobra.Command) {
		count++
		for _, problem := range unhelpful(command) {
			t.Error(problem)
		}
	})
	if count < 40 {
		t.Errorf("control: %d commands were looked at", count)
	}
	for name, broken := range map[string]*cobra.Command{
		"its summary is":     {Use: "run", Short: "Runs.", Long: strings.Repeat("x", 80), Example: "ptah-qualify run"},
		"its help says":      {Use: "run", Short: "Run", Example: "ptah-qualify run"},
		"it has no example":  {Use: "run", Short: "Run", Long: strings.Repeat("x", 80)},
		"its example calls":  {Use: "run", Short: "Run", Long: strings.Repeat("x", 80), Example: "ptah-qualify judge --run x"},
		"is refused":         {Use: "run", Short: "Run", Long: strings.Repeat("x", 80), Example: "ptah-qualify run --no-such-flag"},
		"it has the line":    {Use: "run", Short: "Run", Long: strings.Repeat("x", 200), Example: "ptah-qualify run"},
		`its example ["run"`: {Use: "run", Short: "Run", Long: strings.Repeat("x", 80), Example: "x=$(ptah-qualify run stray) | y"},
	} {
		parent := &cobra.Command{Use: "ptah-qualify"}
		parent.AddCommand(broken)
		if found := unhelpful(broken); !slices.ContainsFunc(found, func(problem string) bool { return strings.Contains(problem, name) }) {
			t.Errorf("control %q: %q", name, found)
		}
	}
}

// uncompleted says what of a command a shell cannot complete.
func uncompleted(command *cobra.Command) []string {
	var found []string
	visit := func(flag *pflag.Flag) {
		if _, complete := command.GetFlagCompletionFunc(flag.Name); !complete && flag.Value.Type() != "bool" {
			found = append(found, command.CommandPath()+" --"+flag.Name)
		}
	}
	command.LocalFlags().VisitAll(visit)
	if command.ValidArgsFunction == nil && !command.HasSubCommands() {
		found = append(found, "the arguments of "+command.CommandPath())
	}
	return found
}

func TestEveryFlagAndEveryArgumentCompletes(t *testing.T) {
	each(newTree(), func(command *cobra.Command) {
		for _, gap := range uncompleted(command) {
			t.Errorf("a shell completes nothing for %s", gap)
		}
	})
	broken := &cobra.Command{Use: "x", Run: func(*cobra.Command, []string) {}}
	broken.Flags().String("name", "", "x")
	if found := uncompleted(broken); !slices.Equal(found, []string{"x --name", "the arguments of x"}) {
		t.Errorf("control: %q", found)
	}
}

func TestAWordBelowACommandThatIsNoCommandIsRefused(t *testing.T) {
	groups := 0
	each(newTree(), func(command *cobra.Command) {
		if !command.HasSubCommands() || !command.HasParent() {
			return
		}
		path := strings.Fields(command.CommandPath())[1:]
		code, out, errs := qualify(t, append(path, "no-such-command")...)
		if code != ExitUsage || out != "" || !strings.Contains(errs, `"no-such-command"`) {
			t.Errorf("%s: exit code %d, %q, %q", command.CommandPath(), code, out, errs)
		}
		if command.Annotations[groupAnnotation] == "" {
			return // it does something of its own
		}
		groups++
		code, out, errs = qualify(t, path...)
		if code != ExitPass || errs != "" || !strings.Contains(out, "Available Commands:") || strings.Contains(out, command.CommandPath()+" [flags]") {
			t.Errorf("%s alone: exit code %d, %q, %q", command.CommandPath(), code, out, errs)
		}
	})
	if groups < 8 {
		t.Errorf("control: %d groups were tried", groups)
	}
	if _, _, errs := qualify(t, "record", "veryfy"); !strings.Contains(errs, "did you mean verify?") || !strings.Contains(errs, "use one of create, impact, inspect, key, review, sign, verify") {
		t.Errorf("%q", errs)
	}
}
