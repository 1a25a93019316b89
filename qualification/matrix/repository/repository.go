// Package repository reads what the catalogues are checked against from a tree of files: the catalogues themselves,
// the matrices, the profiles, the tests of the suites, the chart, go.mod and the images of the lab. It judges nothing.
package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"

	"go.yaml.in/yaml/v3"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/matrix"
	"ptah.run/ptah/qualification/matrix/catalogue"
	"ptah.run/ptah/qualification/matrix/suitesource"
	"ptah.run/ptah/qualification/profile"
)

// suitesFolder holds one Go test package per suite.
const suitesFolder = "qualification/suites"

// Load reads everything that the catalogues are checked against from a repository. An error names the file.
func Load(repository fs.FS) (catalogue.Tree, error) {
	var tree catalogue.Tree
	for _, load := range []func(fs.FS, *catalogue.Tree) error{loadCatalogues, loadMatrices, loadProfiles, loadReports, loadChart, loadModules, loadImages} {
		if err := load(repository, &tree); err != nil {
			return tree, err
		}
	}
	return tree, nil
}

func readFrom(repository fs.FS, name string) ([]byte, error) {
	data, err := fs.ReadFile(repository, name)
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s in this repository", name)
	case errors.As(err, &at):
		return nil, fmt.Errorf("cannot read %s: %w", name, at.Err)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return data, nil
}

func loadCatalogues(repository fs.FS, tree *catalogue.Tree) error {
	data, err := readFrom(repository, catalogue.SuitesFile)
	if err != nil {
		return err
	}
	if tree.Suites, err = catalogue.DecodeSuites(catalogue.SuitesFile, data); err != nil {
		return err
	}
	if data, err = readFrom(repository, catalogue.KubernetesFile); err != nil {
		return err
	}
	if tree.Kubernetes, err = catalogue.DecodeKubernetes(catalogue.KubernetesFile, data); err != nil {
		return err
	}
	if data, err = readFrom(repository, catalogue.MachinesFile); err != nil {
		return err
	}
	tree.Machines, err = catalogue.DecodeMachines(catalogue.MachinesFile, data)
	return err
}

// each calls read for every YAML file of a folder, in the order of their names.
func each(repository fs.FS, folder string, read func(name string, data []byte) error) error {
	names, err := fs.Glob(repository, path.Join(folder, "*.yaml"))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("there is no file in the folder %s of this repository", folder)
	}
	for _, name := range names {
		data, err := readFrom(repository, name)
		if err != nil {
			return err
		}
		if err := read(name, data); err != nil {
			return err
		}
	}
	return nil
}

func loadMatrices(repository fs.FS, tree *catalogue.Tree) error {
	return each(repository, "matrices", func(name string, data []byte) error {
		m, err := matrix.Decode(name, data)
		if err != nil {
			return err
		}
		if path.Base(name) != m.Name+".yaml" {
			return fmt.Errorf("%s declares the matrix %s, rename one of them", name, m.Name)
		}
		tree.Matrices = append(tree.Matrices, m)
		return nil
	})
}

func loadProfiles(repository fs.FS, tree *catalogue.Tree) error {
	return each(repository, "profiles", func(name string, data []byte) error {
		p, err := profile.Decode(name, data)
		if err != nil {
			return err
		}
		if path.Base(name) != p.Name+".yaml" {
			return fmt.Errorf("%s declares the profile %s, rename one of them", name, p.Name)
		}
		tree.Profiles = append(tree.Profiles, p)
		return nil
	})
}

// loadReports reads what the tests of every suite report, and of every folder with tests beside them.
func loadReports(repository fs.FS, tree *catalogue.Tree) error {
	folders, err := suitesource.Folders(repository, suitesFolder)
	if err != nil {
		return err
	}
	for _, suite := range tree.Suites.Suites {
		folders = append(folders, suite.Package)
	}
	tree.Reports = map[string][]catalogue.Report{}
	for _, folder := range folders {
		reports, err := suitesource.Scan(repository, folder)
		if err != nil {
			return err
		}
		if len(reports) > 0 {
			tree.Reports[folder] = reports
		}
	}
	return nil
}

func loadChart(repository fs.FS, tree *catalogue.Tree) error {
	data, err := readFrom(repository, catalogue.ChartFile)
	if err != nil {
		return err
	}
	var chart struct {
		KubeVersion string `yaml:"kubeVersion"`
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		return fmt.Errorf("%s is not YAML: %w", catalogue.ChartFile, err)
	}
	tree.KubeVersion = chart.KubeVersion
	return nil
}

var requirement = regexp.MustCompile(`(?m)^(?:require)?[ \t]*(k8s\.io/[a-z-]+)[ \t]+(v[0-9][^\s]*)`)

func loadModules(repository fs.FS, tree *catalogue.Tree) error {
	data, err := readFrom(repository, catalogue.ModulesFile)
	if err != nil {
		return err
	}
	tree.Modules = map[string]string{}
	for _, found := range requirement.FindAllStringSubmatch(string(data), -1) {
		tree.Modules[found[1]] = found[2]
	}
	return nil
}

// serverRoles are the database engines of which the lab can have a server.
var serverRoles = map[catalog.Role]string{catalog.PostgreSQL: "PostgreSQL", "mysql": "MySQL"}

func loadImages(repository fs.FS, tree *catalogue.Tree) error {
	data, err := readFrom(repository, catalogue.ImagesFile)
	if err != nil {
		return err
	}
	images, err := catalog.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", catalogue.ImagesFile, err)
	}
	tree.Nodes, tree.Servers = map[string]string{}, map[string][]string{}
	for _, image := range images.Images {
		if image.Role == catalog.Node {
			tree.Nodes[image.Version] = image.Release
		}
		if engine := serverRoles[image.Role]; engine != "" {
			tree.Servers[engine] = append(tree.Servers[engine], image.Version)
		}
	}
	return nil
}

// Declarations returns the files that name Kubernetes minors: the catalogues of minors and images, the chart and the
// matrices.
func Declarations(repository fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range []string{catalogue.KubernetesFile, catalogue.ImagesFile, catalogue.ChartFile} {
		data, err := readFrom(repository, name)
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	err := each(repository, "matrices", func(name string, data []byte) error {
		files[name] = data
		return nil
	})
	return files, err
}
