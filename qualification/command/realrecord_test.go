package command_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ptah.run/ptah/qualification/command"
	"ptah.run/ptah/qualification/record"
)

// recordVariable names the folder that a quickstart left: record, key, reports and runs/ID.
const recordVariable = "PTAH_TEST_RECORD"

// realRecord returns the quickstart's folder and the newest run in it.
func realRecord(t *testing.T) (dir, run string) {
	t.Helper()
	dir = os.Getenv(recordVariable)
	if dir == "" {
		t.Skipf("not-run: %s is not set, this proves the record that a quickstart left", recordVariable)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir)
	}
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	if err != nil || len(runs) == 0 {
		t.Fatalf("%s holds no run: %v", dir, err)
	}
	return dir, runs[len(runs)-1]
}

func verify(t *testing.T, dir, run string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	root := command.NewRootCommand(command.IOStreams{Out: &out, Err: &out})
	root.SetArgs([]string{"record", "verify", "--record", filepath.Join(dir, record.FileName), "--key", filepath.Join(dir, "qualification.pub"), "--run", run, "--reports", dir})
	err := root.ExecuteContext(context.Background())
	if err != nil {
		out.WriteString(err.Error())
	}
	return command.ExitCode(err), out.String()
}

// copyTree copies what verification reads, so that it can be damaged.
func copyTree(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestCommittedRecordVerifies holds the record that the repository shows to what it says of itself.
func TestCommittedRecordVerifies(t *testing.T) {
	dir := filepath.Join("..", "..", "reports", "quickstart")
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%s must hold exactly one run, it holds %d: %v", dir, len(runs), err)
	}
	if code, out := verify(t, dir, runs[0]); code != command.ExitPass {
		t.Fatalf("exit %d: %s", code, out)
	}
}

func TestRealRecordVerifies(t *testing.T) {
	dir, run := realRecord(t)
	if code, out := verify(t, dir, run); code != command.ExitPass {
		t.Fatalf("exit %d: %s", code, out)
	}
}

// TestRealRecordVerifiesWithoutNetwork runs the program in a network namespace that has no route, not even loopback.
func TestRealRecordVerifiesWithoutNetwork(t *testing.T) {
	dir, run := realRecord(t)
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("not-run: a network namespace of its own needs root on Linux")
	}
	program := filepath.Join(t.TempDir(), "ptah-qualify")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../cmd/ptah-qualify") // as "make quickstart" built it
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	inside := exec.Command("unshare", "--net", program, "record", "verify", "--record", filepath.Join(dir, record.FileName),
		"--key", filepath.Join(dir, "qualification.pub"), "--run", run, "--reports", dir)
	if out, err := inside.CombinedOutput(); err != nil {
		t.Fatalf("verify without a network: %v: %s", err, out)
	}
	// Control: that namespace has no way out.
	routes, err := exec.Command("unshare", "--net", "cat", "/proc/net/route").Output()
	if err != nil || strings.Count(strings.TrimSpace(string(routes)), "\n") != 0 {
		t.Fatalf("the namespace has routes, so that it proves nothing: %v: %s", err, routes)
	}
}

// TestRealRecordRefusesOneFlippedByte flips one bit in the middle of the record, of each file of the evidence and of
// each report, one file at a time.
func TestRealRecordRefusesOneFlippedByte(t *testing.T) {
	source, sourceRun := realRecord(t)
	id := filepath.Base(sourceRun)
	dir := copyTree(t, source)
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		relative, _ := filepath.Rel(dir, path)
		other := strings.HasPrefix(relative, "runs"+string(filepath.Separator)) && !strings.HasPrefix(relative, filepath.Join("runs", id)+string(filepath.Separator))
		if err == nil && entry.Type().IsRegular() && !other && filepath.Ext(path) != ".key" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, path := range files {
		name, _ := filepath.Rel(dir, path)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) == 0 {
				t.Skip("an empty file has no byte to flip")
			}
			damaged := bytes.Clone(data)
			damaged[len(damaged)/2] ^= 1
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damaged, 0o644); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := os.WriteFile(path, data, 0o644); err != nil {
					t.Fatal(err)
				}
			}()
			code, out := verify(t, dir, filepath.Join(dir, "runs", id))
			if code != command.ExitVerificationFailed {
				// A damaged key file is a key that cannot be used, or another one: both say so.
				if filepath.Base(path) == "qualification.pub" && code == command.ExitUsage {
					return
				}
				t.Errorf("exit %d, want %d: %s", code, command.ExitVerificationFailed, out)
			}
		})
	}
}
