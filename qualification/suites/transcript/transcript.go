// Package transcript runs the commands of a documentation page and compares what they print with what the page says,
// so that a page cannot go stale.
//
// A fenced block of the language "console" holds commands, each after "$ ", and the output expected of each. In an
// expected line "…" stands for any text; a line of only "…" stands for any number of lines. A command may go on in
// the next line after a backslash, and may take a here-document; lines of either are kept as they are. A block whose
// info string is "console interrupt" holds one command that does not end by itself: it is interrupted, as a person
// does with Ctrl-C, once a line of its output matches the last expected line. Blocks of other languages are not run.
package transcript

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// Step is one command of a page.
type Step struct {
	Line     int // of the page, from 1
	Command  string
	Expected []string
	// Interrupt says that the command is interrupted once its last expected line was printed.
	Interrupt bool
}

// Parse reads the steps of a page. A console block without a command, output before the first command, an empty
// command and a block without its end are refused with the line.
func Parse(page string) ([]Step, error) {
	var steps []Step
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		info, found := strings.CutPrefix(lines[i], "```console")
		if !found {
			if strings.HasPrefix(lines[i], "```") { // another language: skip it whole
				for i++; i < len(lines) && lines[i] != "```"; i++ {
				}
			}
			continue
		}
		end := i + 1
		for end < len(lines) && lines[end] != "```" {
			end++
		}
		if end == len(lines) {
			return nil, fmt.Errorf("line %d: the console block has no end", i+1)
		}
		block, err := parseBlock(lines[i+1:end], i+2)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(info) == "interrupt" {
			if len(block) != 1 || len(block[0].Expected) == 0 {
				return nil, fmt.Errorf("line %d: an interrupted block needs one command and the line to wait for", i+1)
			}
			block[0].Interrupt = true
		} else if strings.TrimSpace(info) != "" {
			return nil, fmt.Errorf("line %d: unknown word %q after console, only \"interrupt\" is known", i+1, strings.TrimSpace(info))
		}
		steps = append(steps, block...)
		i = end
	}
	return steps, nil
}

var hereDocument = regexp.MustCompile(`<<-?\s*'?([A-Za-z]+)'?`)

func parseBlock(lines []string, first int) ([]Step, error) {
	var steps []Step
	for i := 0; i < len(lines); i++ {
		command, found := strings.CutPrefix(lines[i], "$ ")
		if !found {
			if len(steps) == 0 {
				return nil, fmt.Errorf("line %d: output before the first command", first+i)
			}
			step := &steps[len(steps)-1]
			step.Expected = append(step.Expected, lines[i])
			continue
		}
		step := Step{Line: first + i, Command: command}
		for strings.HasSuffix(step.Command, "\\") && i+1 < len(lines) {
			i++
			step.Command += "\n" + lines[i]
		}
		if match := hereDocument.FindStringSubmatch(command); match != nil {
			for closed := false; !closed; {
				i++
				if i == len(lines) {
					return nil, fmt.Errorf("line %d: the here-document has no end %s", step.Line, match[1])
				}
				step.Command += "\n" + lines[i]
				closed = lines[i] == match[1]
			}
		}
		if strings.TrimSpace(step.Command) == "" {
			return nil, fmt.Errorf("line %d: an empty command", step.Line)
		}
		steps = append(steps, step)
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("line %d: a console block without a command", first-1)
	}
	return steps, nil
}

// Matches compares output with the expected lines and says where they part.
func Matches(expected []string, output string) error {
	var got []string
	for _, line := range strings.Split(strings.TrimRight(output, "\n"), "\n") {
		got = append(got, strings.TrimRight(line, " \t"))
	}
	if output == "" {
		got = nil
	}
	for len(expected) > 0 && expected[len(expected)-1] == "" { // a blank line before the fence is layout
		expected = expected[:len(expected)-1]
	}
	if matchLines(expected, got) {
		return nil
	}
	return fmt.Errorf("expected:\n%s\nprinted:\n%s", indent(expected), indent(got))
}

func matchLines(expected, got []string) bool {
	if len(expected) == 0 {
		return len(got) == 0
	}
	if expected[0] == "…" {
		for skip := 0; skip <= len(got); skip++ {
			if matchLines(expected[1:], got[skip:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && matchLine(expected[0], got[0]) && matchLines(expected[1:], got[1:])
}

func matchLine(expected, got string) bool {
	parts := strings.Split(strings.TrimRight(expected, " \t"), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	// The width of a table's columns depends on what is in them, so that a run of blanks equals any other.
	pattern := regexp.MustCompile(` {2,}`).ReplaceAllString(strings.Join(parts, ".*"), ` +`)
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}

func indent(lines []string) string { return "    " + strings.Join(lines, "\n    ") }

// Run runs a step in a folder with an environment, and compares. It returns the output in any case. A command that
// fails is an error unless it was interrupted on purpose.
func Run(ctx context.Context, step Step, dir string, environment []string) (string, error) {
	command := exec.CommandContext(ctx, "bash", "-c", step.Command)
	command.Dir, command.Env = dir, environment
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	if step.Interrupt {
		return runUntil(step, command)
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("line %d: %s: %w\n%s", step.Line, step.Command, err, indent(strings.Split(output.String(), "\n")))
	}
	if err := Matches(step.Expected, output.String()); err != nil {
		return output.String(), fmt.Errorf("line %d: %s\n%w", step.Line, step.Command, err)
	}
	return output.String(), nil
}

// runUntil interrupts the command once the last expected line was seen.
func runUntil(step Step, command *exec.Cmd) (string, error) {
	last := step.Expected[len(step.Expected)-1]
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("line %d: start %s: %w", step.Line, step.Command, err)
	}
	var output strings.Builder
	interrupted := false
	var reading sync.WaitGroup
	reading.Go(func() {
		scanner := bufio.NewScanner(reader)
		for scanner.Scan() {
			if interrupted {
				continue // drain, so that the command can end
			}
			output.WriteString(scanner.Text() + "\n")
			if matchLine(last, strings.TrimRight(scanner.Text(), " \t")) {
				interrupted = true
				_ = syscall.Kill(-command.Process.Pid, syscall.SIGINT) // refused where it has ended by itself
			}
		}
	})
	err := command.Wait()
	_ = writer.Close() // a pipe closes without fail
	reading.Wait()
	if !interrupted {
		how := "without an error"
		if err != nil {
			how = err.Error()
		}
		return output.String(), fmt.Errorf("line %d: %s ended (%s) before it printed %q:\n%s", step.Line, step.Command, how, last, indent(strings.Split(output.String(), "\n")))
	}
	if err := Matches(step.Expected, output.String()); err != nil {
		return output.String(), fmt.Errorf("line %d: %s\n%w", step.Line, step.Command, err)
	}
	return output.String(), nil
}
