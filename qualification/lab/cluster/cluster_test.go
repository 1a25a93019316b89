package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

func spec() Spec {
	return Spec{Name: "ptah-x", Image: "node:v1", Version: "v1.37.2", ControlPlanes: 3, Workers: 1, AuditRoot: "/state/audit", CertsDir: "/state/certs.d",
		Machine: Machine{CgroupV1: true, LacksSysResource: true}}
}

func TestEveryAPIServerWritesAnAuditLogOfItsOwnOnTheHost(t *testing.T) {
	config, err := Config(spec())
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Nodes) != 4 || config.Nodes[3].Role != v1alpha4.WorkerRole {
		t.Fatalf("got %d nodes", len(config.Nodes))
	}
	seen := map[string]bool{}
	for _, node := range config.Nodes[:3] {
		for _, mount := range node.ExtraMounts {
			if mount.ContainerPath == nodeAuditDir {
				seen[mount.HostPath] = true
			}
		}
	}
	for _, dir := range []string{"/state/audit/ptah-x-control-plane", "/state/audit/ptah-x-control-plane2", "/state/audit/ptah-x-control-plane3"} {
		if !seen[dir] {
			t.Errorf("%s is not mounted; mounted are %v", dir, seen)
		}
	}
	if len(config.Nodes[3].ExtraMounts) != 1 {
		t.Errorf("the worker has the mounts %v", config.Nodes[3].ExtraMounts)
	}
}

func TestAuditArgumentsAreAddedInTheFormOfTheVersion(t *testing.T) {
	for version, form := range map[string]string{"v1.37.2": "/apiServer/extraArgs/-", "v1.36.3": "/apiServer/extraArgs/-", "v1.35.4": "/apiServer/extraArgs/audit-log-mode"} {
		s := spec()
		s.Version = version
		config, err := Config(s)
		if err != nil {
			t.Fatal(err)
		}
		patch := config.KubeadmConfigPatchesJSON6902[0]
		var operations []map[string]any
		if err := json.Unmarshal([]byte(patch.Patch), &operations); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, operation := range operations {
			found = found || operation["path"] == form
		}
		if !found || !strings.Contains(patch.Patch, "blocking") {
			t.Errorf("%s: %s", version, patch.Patch)
		}
		if want := map[bool]string{true: "v1beta4", false: "v1beta3"}[version != "v1.35.4"]; patch.Version != want {
			t.Errorf("%s patches %s", version, patch.Version)
		}
	}
	s := spec()
	s.Version = "latest"
	if _, err := Config(s); err == nil {
		t.Error("a version that is none must be refused")
	}
}

func TestOnlyAMachineThatNeedsItIsAdjustedFor(t *testing.T) {
	cases := map[string]struct {
		machine                 Machine
		gates, cgroupfs, oomOff bool
	}{
		"an ordinary machine": {Machine{}, false, false, false},
		"cgroup v1":           {Machine{CgroupV1: true}, false, true, false},
		"no CAP_SYS_RESOURCE": {Machine{LacksSysResource: true}, true, false, true},
		"both":                {Machine{CgroupV1: true, LacksSysResource: true}, true, true, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := spec()
			s.Machine = c.machine
			config, err := Config(s)
			if err != nil {
				t.Fatal(err)
			}
			containerd := strings.Join(config.ContainerdConfigPatches, "")
			if got := config.FeatureGates["KubeletInUserNamespace"]; got != c.gates {
				t.Errorf("feature gate %v", got)
			}
			if got := strings.Contains(containerd, "SystemdCgroup = false") && strings.Contains(strings.Join(config.KubeadmConfigPatches, ""), "cgroupfs"); got != c.cgroupfs {
				t.Errorf("cgroupfs %v", got)
			}
			if got := strings.Contains(containerd, "restrict_oom_score_adj"); got != c.oomOff {
				t.Errorf("restricted OOM score %v", got)
			}
			if !strings.Contains(containerd, nodeCertsDir) {
				t.Error("the registry's authority is not configured")
			}
		})
	}
}

func TestANodeRoutesToTheOthersAndMasqueradesOnlyWhatLeaves(t *testing.T) {
	all := []NodeAddress{{"a", "172.20.0.2", "10.244.0.0/24"}, {"b", "172.20.0.3", "10.244.1.0/24"}}
	script, err := NetworkScript(all[0], all)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(script, "ip route replace 10.244.1.0/24 via 172.20.0.3") || strings.Contains(script, "10.244.0.0/24") {
		t.Errorf("routes: %s", script)
	}
	if !strings.Contains(script, "-s 10.244.0.0/16 ! -d 10.244.0.0/16") {
		t.Errorf("masquerade: %s", script)
	}
	for name, broken := range map[string]NodeAddress{"an address": {"c", "$(reboot)", "10.244.2.0/24"}, "a range": {"c", "172.20.0.4", "; reboot"}} {
		if _, err := NetworkScript(all[0], append(all, broken)); err == nil {
			t.Errorf("%s that is none must be refused", name)
		}
	}
	config, err := NetworkConfig(all[1])
	if err != nil || !strings.Contains(string(config), "10.244.1.0/24") || !json.Valid(config) {
		t.Errorf("configuration %s, %v", config, err)
	}
	if _, err := NetworkConfig(NodeAddress{Name: "d"}); err == nil {
		t.Error("a node without a range must be refused")
	}
}
