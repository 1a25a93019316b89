package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"ptah.run/ptah/qualification/lab/cache"
	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/gobuild"
	"ptah.run/ptah/qualification/lab/programs"
)

// programRecipe changes when the way of building does, so that old entries are not taken for new ones.
const programRecipe = 1

// Programs builds the program sets of a catalogue into a cache.
type Programs struct {
	Store *cache.Store
}

// Ensure returns the folder with the programs of a set, or with the files of its module.
func (p *Programs) Ensure(ctx context.Context, set catalog.Program) (string, error) {
	recipe := cache.Recipe{Kind: "programs", Name: set.Name, Inputs: map[string]any{
		"recipe": programRecipe, "program": set.Recipe(), "go": goVersion(ctx), "architecture": runtime.GOARCH,
	}}
	return p.Store.Ensure(ctx, recipe, func(ctx context.Context, dir string) error {
		return buildProgram(ctx, set, dir)
	})
}

// Own returns the file of one of the lab's own small programs.
func (p *Programs) Own(ctx context.Context, program string) (string, error) {
	files, err := programs.Source(program, "1.26")
	if err != nil {
		return "", err
	}
	recipe := cache.Recipe{Kind: "programs", Name: "lab-" + program, Inputs: map[string]any{
		"recipe": programRecipe, "files": files, "go": goVersion(ctx), "architecture": runtime.GOARCH,
	}}
	dir, err := p.Store.Ensure(ctx, recipe, func(ctx context.Context, dir string) error {
		return gobuild.FromSource(ctx, files, filepath.Join(dir, program))
	})
	return filepath.Join(dir, program), err
}

// goVersion is part of each recipe. Where there is no Go the build itself says so.
func goVersion(ctx context.Context) string {
	output, err := gobuild.Run(ctx, "", gobuild.Environment{}, "env", "GOVERSION")
	if err != nil {
		return "none"
	}
	return strings.TrimSpace(string(output))
}

// module is what `go mod download -json` prints.
type module struct {
	Path, Version, Dir, Sum, Error string
}

func buildProgram(ctx context.Context, set catalog.Program, dir string) error {
	pins := append([]catalog.Pin{{Module: set.Module, Version: set.Version, Sum: set.Sum}}, set.With...)
	var modules []module
	for _, pin := range pins {
		downloaded, err := download(ctx, pin)
		if err != nil {
			return err
		}
		modules = append(modules, downloaded)
	}
	if set.Files != "" {
		return copyTree(filepath.Join(modules[0].Dir, filepath.FromSlash(set.Files)), dir)
	}
	scratch, err := os.MkdirTemp("", "ptah-scratch-")
	if err != nil {
		return fmt.Errorf("make a folder for a scratch module: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // what is left lies in the temporary folder
	if err := writeScratchModule(ctx, scratch, set, modules); err != nil {
		return err
	}
	return compile(ctx, scratch, set, dir)
}

func download(ctx context.Context, pin catalog.Pin) (module, error) {
	output, err := gobuild.Run(ctx, os.TempDir(), gobuild.Environment{}, "mod", "download", "-json", pin.Module+"@"+pin.Version)
	var downloaded module
	if decodeErr := json.Unmarshal(output, &downloaded); decodeErr == nil && downloaded.Error != "" {
		return module{}, fmt.Errorf("download %s %s: %s", pin.Module, pin.Version, downloaded.Error)
	}
	if err != nil {
		return module{}, fmt.Errorf("download %s %s: %w", pin.Module, pin.Version, err)
	}
	if pin.Sum != "" && downloaded.Sum != pin.Sum {
		return module{}, fmt.Errorf("module %s %s has the digest %s, and the image catalogue expects %s: do not use it", pin.Module, pin.Version, downloaded.Sum, pin.Sum)
	}
	return downloaded, nil
}

// goMod is what `go mod edit -json` prints of a go.mod.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// writeScratchModule makes a module that requires the given ones. It stands in for `go install module@version`,
// which refuses a module whose own go.mod replaces others. The go.sum of the modules pins what they depend on;
// what is missing there (the replaced modules) is verified by the Go checksum database as for every build.
func writeScratchModule(ctx context.Context, scratch string, set catalog.Program, modules []module) error {
	var text, sums strings.Builder
	text.WriteString("module " + catalog.ScratchModule + "\n\n")
	for i, module := range modules {
		output, err := gobuild.Run(ctx, scratch, gobuild.Environment{}, "mod", "edit", "-json", filepath.Join(module.Dir, "go.mod"))
		if err != nil {
			return err
		}
		var parsed goMod
		if err := json.Unmarshal(output, &parsed); err != nil {
			return fmt.Errorf("read the go.mod of %s: %w", module.Path, err)
		}
		if i == 0 {
			fmt.Fprintf(&text, "go %s\n\n", parsed.Go)
		}
		fmt.Fprintf(&text, "require %s %s\n", module.Path, module.Version)
		staged := map[string]bool{}
		for _, replace := range parsed.Replace {
			if set.Staging != "" && strings.HasPrefix(replace.New.Path, "./staging/") {
				fmt.Fprintf(&text, "replace %[1]s => %[1]s %[2]s\n", replace.Old.Path, set.Staging)
				staged[replace.Old.Path] = true
			}
		}
		for _, require := range parsed.Require {
			if staged[require.Path] { // so that the compiler sees the module's own version, and not v0.0.0
				fmt.Fprintf(&text, "require %s %s\n", require.Path, set.Staging)
			}
		}
		sum, err := os.ReadFile(filepath.Join(module.Dir, "go.sum"))
		if err == nil {
			sums.Write(sum)
		}
	}
	if err := os.WriteFile(filepath.Join(scratch, "go.mod"), []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write the scratch module: %w", err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "go.sum"), []byte(sums.String()), 0o600); err != nil {
		return fmt.Errorf("write the scratch module: %w", err)
	}
	if set.Main == "" {
		return nil
	}
	if err := os.WriteFile(filepath.Join(scratch, "main.go"), []byte(set.Main), 0o600); err != nil {
		return fmt.Errorf("write the scratch module: %w", err)
	}
	return nil
}

func compile(ctx context.Context, scratch string, set catalog.Program, dir string) error {
	ldflags := strings.TrimSpace("-s -w " + set.LDFlags)
	if set.CGO {
		ldflags += ` -extldflags "-static"`
	}
	arguments := []string{"build", "-mod=mod", "-trimpath", "-ldflags", ldflags}
	if len(set.Tags) > 0 {
		arguments = append(arguments, "-tags", strings.Join(set.Tags, ","))
	}
	var together []string
	for _, entry := range set.Packages {
		pkg, program, named := strings.Cut(entry, "=")
		if !named {
			together = append(together, pkg)
			continue
		}
		separate := append(append([]string{}, arguments...), "-o", filepath.Join(dir, program), pkg)
		if _, err := gobuild.Run(ctx, scratch, gobuild.Environment{CGO: set.CGO}, separate...); err != nil {
			return err
		}
	}
	if len(together) > 0 {
		arguments = append(append(arguments, "-o", dir+string(filepath.Separator)), together...)
		if _, err := gobuild.Run(ctx, scratch, gobuild.Environment{CGO: set.CGO}, arguments...); err != nil {
			return err
		}
	}
	for _, name := range programNames(set) {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("building %s did not give the program %s", set.Module, name)
		}
	}
	return keepPins(scratch, dir)
}

// keepPins puts the module versions that were really used beside the programs: they are evidence.
func keepPins(scratch, dir string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(scratch, name))
		if err != nil {
			return fmt.Errorf("keep the module versions of a build: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("keep the module versions of a build: %w", err)
		}
	}
	return nil
}

// programNames returns the names of the programs of a set, in its order.
func programNames(set catalog.Program) []string {
	var names []string
	for _, entry := range set.Packages {
		pkg, name, named := strings.Cut(entry, "=")
		if !named {
			name = path.Base(pkg)
		}
		names = append(names, name)
	}
	return names
}

// copyTree copies regular files and folders; files become writable, so that the copy can be removed.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(source string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("copy the files of a module: %w", err)
		}
		relative, err := filepath.Rel(from, source)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := os.ReadFile(source)
		if err != nil {
			return fmt.Errorf("copy the files of a module: %w", err)
		}
		return os.WriteFile(target, content, 0o644)
	})
}
