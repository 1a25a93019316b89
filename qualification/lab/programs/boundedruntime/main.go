// Command runc-bounded is an OCI runtime for machines whose own capability bounding set is not full. The kernel
// refuses to give a container a capability which the machine lacks, so `docker run --privileged`, which asks for
// all of them, fails there. This program removes from the container's specification exactly the capabilities
// that its own bounding set lacks and then becomes the real runc. Where nothing is missing it changes nothing.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runc-bounded: "+err.Error())
		os.Exit(1)
	}
}

func run(arguments []string) error {
	real, err := realRuntime([]string{"/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc", "/usr/local/bin/runc"})
	if err != nil {
		return err
	}
	if target := parse(arguments); target.file != "" {
		bounding, err := boundingSet("/proc/self/status")
		if err != nil {
			return err
		}
		if err := restrictFile(target, bounding); err != nil {
			return err
		}
	}
	return syscall.Exec(real, append([]string{real}, arguments...), os.Environ())
}

// realRuntime returns the first of the candidates that exists and is not this program itself.
func realRuntime(candidates []string) (string, error) {
	self, _ := os.Readlink("/proc/self/exe")
	for _, candidate := range candidates {
		resolved, err := filepath.EvalSymlinks(candidate)
		if err == nil && resolved != self {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("no runc found at %s: install the runc package", strings.Join(candidates, ", "))
}

// target is the file that holds the capabilities of what is about to start: a bundle's config.json, where they
// lie under "process", or the process file of an exec, where they lie at the top.
type target struct {
	file  string
	inner bool
}

// parse finds the file in runc's command line. Other verbs than create, run and exec have none.
func parse(arguments []string) target {
	verb, bundle, process := "", ".", ""
	for i := 0; i < len(arguments); i++ {
		name, value, inline := strings.Cut(arguments[i], "=")
		if !inline && i+1 < len(arguments) {
			value = arguments[i+1]
		}
		switch name {
		case "--bundle", "-b":
			bundle = value
		case "--process", "-p":
			process = value
		case "create", "run", "exec":
			if verb == "" {
				verb = name
			}
		}
	}
	switch verb {
	case "create", "run":
		return target{file: filepath.Join(bundle, "config.json"), inner: true}
	case "exec":
		return target{file: process}
	}
	return target{}
}

// boundingSet reads the bounding set of a process from its status file.
func boundingSet(statusFile string) (uint64, error) {
	content, err := os.ReadFile(statusFile)
	if err != nil {
		return 0, fmt.Errorf("read the capability bounding set: %w", err)
	}
	for _, line := range strings.Split(string(content), "\n") {
		if text, found := strings.CutPrefix(line, "CapBnd:"); found {
			var set uint64
			if _, err := fmt.Sscanf(strings.TrimSpace(text), "%x", &set); err != nil {
				return 0, fmt.Errorf("read the capability bounding set in %s: %w", statusFile, err)
			}
			return set, nil
		}
	}
	return 0, fmt.Errorf("%s has no CapBnd line", statusFile)
}

func restrictFile(t target, bounding uint64) error {
	content, err := os.ReadFile(t.file)
	if os.IsNotExist(err) {
		return nil // runc itself will say what is missing
	}
	if err != nil {
		return fmt.Errorf("read the container specification: %w", err)
	}
	restricted, changed, err := restrict(content, t.inner, bounding)
	if err != nil {
		return fmt.Errorf("restrict the capabilities in %s: %w", t.file, err)
	}
	if !changed {
		return nil
	}
	temporary := t.file + ".bounded"
	if err := os.WriteFile(temporary, restricted, 0o600); err != nil {
		return fmt.Errorf("write the restricted container specification: %w", err)
	}
	if err := os.Rename(temporary, t.file); err != nil {
		return fmt.Errorf("replace the container specification: %w", err)
	}
	return nil
}

// restrict removes the capabilities outside the bounding set and leaves every other byte's meaning as it was.
func restrict(content []byte, inner bool, bounding uint64) ([]byte, bool, error) {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(content, &outer); err != nil {
		return nil, false, err
	}
	process := outer
	if inner {
		if len(outer["process"]) == 0 || string(outer["process"]) == "null" {
			return content, false, nil
		}
		process = nil
		if err := json.Unmarshal(outer["process"], &process); err != nil {
			return nil, false, err
		}
	}
	var sets map[string][]string
	if raw := process["capabilities"]; len(raw) > 0 {
		if err := json.Unmarshal(raw, &sets); err != nil {
			return nil, false, err
		}
	}
	changed := false
	for kind, names := range sets {
		kept := names[:0:0]
		for _, name := range names {
			if bit, known := capabilityBits[name]; known && bounding&(1<<bit) == 0 {
				changed = true
				continue
			}
			kept = append(kept, name)
		}
		sets[kind] = kept
	}
	if !changed {
		return content, false, nil
	}
	var err error
	if process["capabilities"], err = json.Marshal(sets); err != nil {
		return nil, false, err
	}
	if inner {
		if outer["process"], err = json.Marshal(process); err != nil {
			return nil, false, err
		}
	}
	restricted, err := json.Marshal(outer)
	return restricted, true, err
}
