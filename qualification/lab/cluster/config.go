// Package cluster makes Kubernetes clusters with kind's library and gives them a Pod network of their own. What it
// asks of kind is a pure function of what is wanted and of what the machine can do.
package cluster

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// Addresses inside a cluster.
const (
	PodSubnet     = "10.244.0.0/16"
	ServiceSubnet = "10.96.0.0/16"
)

// AuditFile is the name of an API server's audit log in its folder.
const AuditFile = "audit.log"

const (
	nodeAuditDir    = "/var/log/kubernetes/audit"
	nodeAuditPolicy = "/etc/kubernetes/audit/policy.yaml"
	nodeCertsDir    = "/etc/containerd/certs.d"
	// A log is turned over only beyond this size in megabytes, which no run reaches; older parts are all kept.
	auditMaxMegabytes = "10240"
)

// Machine says what kind of machine the nodes run on.
type Machine struct {
	CgroupV1         bool
	LacksSysResource bool // no CAP_SYS_RESOURCE: nothing may lower an OOM score
}

// Spec is what is wanted.
type Spec struct {
	Name          string
	Image         string // of the nodes
	Version       string // v1.37.2
	ControlPlanes int
	Workers       int
	APIPort       int32  // on 127.0.0.1 of the host; 0 picks a free one
	AuditRoot     string // on the host: one folder for each control plane, and policy.yaml
	CertsDir      string // on the host: containerd's certs.d
	Machine       Machine
}

// ControlPlaneName returns the container name that kind gives to the control plane of an index from 0.
func ControlPlaneName(cluster string, index int) string {
	if index == 0 {
		return cluster + "-control-plane"
	}
	return cluster + "-control-plane" + strconv.Itoa(index+1)
}

// AuditDirs returns the folders on the host in which the API servers' audit logs lie.
func (s Spec) AuditDirs() []string {
	var dirs []string
	for i := range s.ControlPlanes {
		dirs = append(dirs, filepath.Join(s.AuditRoot, ControlPlaneName(s.Name, i)))
	}
	return dirs
}

// Config returns what kind is asked for.
func Config(s Spec) (*v1alpha4.Cluster, error) {
	minor, err := minorVersion(s.Version)
	if err != nil {
		return nil, err
	}
	patch, err := auditPatch(minor)
	if err != nil {
		return nil, err
	}
	config := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Name:     s.Name,
		Networking: v1alpha4.Networking{
			IPFamily: v1alpha4.IPv4Family, APIServerAddress: "127.0.0.1", APIServerPort: s.APIPort,
			PodSubnet: PodSubnet, ServiceSubnet: ServiceSubnet, DisableDefaultCNI: true,
		},
		KubeadmConfigPatchesJSON6902: []v1alpha4.PatchJSON6902{patch},
		ContainerdConfigPatches:      containerdPatches(s.Machine),
		KubeadmConfigPatches:         kubeletPatches(s.Machine),
	}
	if s.Machine.LacksSysResource {
		// The kubelet and what it starts then do without lowering OOM scores.
		config.FeatureGates = map[string]bool{"KubeletInUserNamespace": true}
	}
	certs := v1alpha4.Mount{HostPath: s.CertsDir, ContainerPath: nodeCertsDir, Readonly: true}
	for _, dir := range s.AuditDirs() {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.ControlPlaneRole, Image: s.Image, ExtraMounts: []v1alpha4.Mount{
			certs,
			{HostPath: dir, ContainerPath: nodeAuditDir},
			{HostPath: filepath.Join(s.AuditRoot, "policy.yaml"), ContainerPath: nodeAuditPolicy, Readonly: true},
		}})
	}
	for range s.Workers {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, Image: s.Image, ExtraMounts: []v1alpha4.Mount{certs}})
	}
	return config, nil
}

func minorVersion(version string) (int, error) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) == 3 && parts[0] == "1" {
		if minor, err := strconv.Atoi(parts[1]); err == nil {
			return minor, nil
		}
	}
	return 0, fmt.Errorf("%q is no Kubernetes version such as v1.37.2", version)
}

func containerdPatches(machine Machine) []string {
	patches := []string{fmt.Sprintf("[plugins.\"io.containerd.grpc.v1.cri\".registry]\n  config_path = %q\n", nodeCertsDir)}
	if machine.LacksSysResource {
		patches = append(patches, "[plugins.\"io.containerd.grpc.v1.cri\"]\n  restrict_oom_score_adj = true\n")
	}
	if machine.CgroupV1 {
		// On cgroup v1 the systemd driver now and then fails to freeze a cgroup that it removes.
		patches = append(patches, "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\n  SystemdCgroup = false\n")
	}
	return patches
}

func kubeletPatches(machine Machine) []string {
	if !machine.CgroupV1 {
		return nil
	}
	return []string{"kind: KubeletConfiguration\nfailCgroupV1: false\ncgroupDriver: cgroupfs\n"}
}

// firstListMinor is the first minor version for which kind writes arguments as a list and not as a map.
const firstListMinor = 36

// auditPatch adds the audit arguments and their mounts to the API server without replacing what kind sets there.
func auditPatch(minor int) (v1alpha4.PatchJSON6902, error) {
	arguments := [][2]string{
		{"audit-policy-file", nodeAuditPolicy},
		{"audit-log-path", nodeAuditDir + "/" + AuditFile},
		{"audit-log-mode", "blocking"},
		{"audit-log-maxsize", auditMaxMegabytes},
		{"audit-log-maxbackup", "0"},
		{"audit-log-maxage", "0"},
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var operations []operation
	version := "v1beta4"
	for _, argument := range arguments {
		if minor >= firstListMinor {
			operations = append(operations, operation{"add", "/apiServer/extraArgs/-", map[string]string{"name": argument[0], "value": argument[1]}})
			continue
		}
		version = "v1beta3"
		operations = append(operations, operation{"add", "/apiServer/extraArgs/" + argument[0], argument[1]})
	}
	operations = append(operations, operation{"add", "/apiServer/extraVolumes", []map[string]any{
		{"name": "audit-policy", "hostPath": nodeAuditPolicy, "mountPath": nodeAuditPolicy, "readOnly": true, "pathType": "File"},
		{"name": "audit-log", "hostPath": nodeAuditDir, "mountPath": nodeAuditDir, "pathType": "Directory"},
	}})
	text, err := json.Marshal(operations)
	if err != nil {
		return v1alpha4.PatchJSON6902{}, err
	}
	return v1alpha4.PatchJSON6902{Group: "kubeadm.k8s.io", Version: version, Kind: "ClusterConfiguration", Patch: string(text)}, nil
}
