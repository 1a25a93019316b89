package catalogue

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"ptah.run/ptah/qualification/matrix"
)

// modulesOfKubernetes are the Go modules of Kubernetes that are released together and must be of one minor.
var modulesOfKubernetes = []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiserver", "k8s.io/client-go"}

var moduleVersion = regexp.MustCompile(`^v0\.([0-9]{1,4})\.[0-9]+$`)

// checkWindow holds the window against the time, the chart, go.mod, the images of the lab and the matrices.
func (t Tree) checkWindow(found *findings, now time.Time) {
	if err := t.Kubernetes.CheckAge(now); err != nil {
		found.add(KubernetesFile, "%v", err)
	}
	if want := t.Kubernetes.KubeVersion(); t.KubeVersion != want {
		found.add(ChartFile, "kubeVersion is %q, and the window of %s is %q; write that, or move the window", t.KubeVersion, KubernetesFile, want)
	}
	t.checkModules(found)
	for _, release := range t.Kubernetes.Releases {
		switch node := t.Nodes[release.Minor]; node {
		case "v" + release.Version:
		case "":
			found.add(ImagesFile, "there is no node image of Kubernetes %s, which %s supports", release.Minor, KubernetesFile)
		default:
			found.add(ImagesFile, "the node image of Kubernetes %s is of %s, and %s tests v%s", release.Minor, node, KubernetesFile, release.Version)
		}
	}
	for _, minor := range sortedKeys(t.Nodes) {
		if !slices.Contains(t.Kubernetes.Minors(), minor) {
			found.add(ImagesFile, "it has a node image of Kubernetes %s, outside of the window %s", minor, strings.Join(t.Kubernetes.Minors(), ", "))
		}
	}
	for _, m := range t.Matrices {
		t.checkMinors(found, m)
	}
}

// checkModules refuses Kubernetes modules of several minors, newer than the window, or more than one minor behind it.
func (t Tree) checkModules(found *findings) {
	newest := number(t.Kubernetes.Newest().Minor)
	first := ""
	for _, module := range modulesOfKubernetes {
		version := t.Modules[module]
		match := moduleVersion.FindStringSubmatch(version)
		if match == nil {
			found.add(ModulesFile, "it does not require a release of %s (%q); require one of the window's minors", module, version)
			continue
		}
		switch {
		case first == "":
			first = match[1]
		case first != match[1]:
			found.add(ModulesFile, "%s is %s and %s is of 0.%s; require modules of one Kubernetes minor", module, version, modulesOfKubernetes[0], first)
			continue
		}
		if behind := newest - number("1."+match[1]); behind < 0 || behind > 1 {
			found.add(ModulesFile, "%s %s is of Kubernetes 1.%s, and the newest of the window is 1.%d; require that minor or the one before", module, version, match[1], newest)
		}
	}
}

// checkMinors refuses a matrix with a cell of an unsupported minor, or whose axis kubernetes is not the whole window.
func (t Tree) checkMinors(found *findings, m *matrix.Matrix) {
	window := t.Kubernetes.Minors()
	for _, axis := range m.Axes {
		var minors []string
		for _, value := range axis.Values {
			minor, ok := value.Attributes[matrix.AttributeMinor]
			if !ok {
				continue
			}
			minors = append(minors, minor)
			if !slices.Contains(window, minor) {
				found.add(matrixFile(m.Name), "%s of axis %s is of Kubernetes %s, outside of the window %s", value.Name, axis.Name, minor, strings.Join(window, ", "))
			} else if !strings.Contains(value.Name, "kubernetes-"+minor) {
				found.add(matrixFile(m.Name), "%s of axis %s is of Kubernetes %s; name it after that, kubernetes-%s", value.Name, axis.Name, minor, minor)
			}
		}
		if axis.Name == AxisKubernetes && !slices.Equal(minors, window) {
			found.add(matrixFile(m.Name), "axis %s has %s, and the window is %s", axis.Name, orNothing(minors), strings.Join(window, ", "))
		}
	}
}

// AxisKubernetes is the axis that holds the whole window.
const AxisKubernetes = "kubernetes"

func orNothing(minors []string) string {
	if len(minors) == 0 {
		return "no minor"
	}
	return strings.Join(minors, ", ")
}
