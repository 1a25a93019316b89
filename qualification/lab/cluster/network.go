package cluster

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// NodeAddress is what the Pod network needs to know of a node.
type NodeAddress struct {
	Name    string
	Address string // in the engine's network
	PodCIDR string
}

// maximumTransmission is the packet size of the engine's bridge networks.
const maximumTransmission = 1500

// NetworkConfig is a node's CNI configuration: an address from the node's own range for each Pod, a pair of
// interfaces to the node, and host ports.
func NetworkConfig(node NodeAddress) ([]byte, error) {
	if _, err := netip.ParsePrefix(node.PodCIDR); err != nil {
		return nil, fmt.Errorf("node %s has no usable Pod range: %w", node.Name, err)
	}
	return json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       "lab",
		"plugins": []any{
			map[string]any{
				"type": "ptp", "ipMasq": false, "mtu": maximumTransmission,
				"ipam": map[string]any{
					"type": "host-local", "dataDir": "/run/cni-ipam-state",
					"routes": []any{map[string]string{"dst": "0.0.0.0/0"}},
					"ranges": []any{[]any{map[string]string{"subnet": node.PodCIDR}}},
				},
			},
			map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}},
		},
	}, "", "  ")
}

// NetworkScript is the shell that makes a node reach the Pods of the other nodes and masquerades what leaves the Pod
// network, and only that: Pods see each other's own addresses. It may run more than once.
func NetworkScript(node NodeAddress, all []NodeAddress) (string, error) {
	lines := []string{"set -eu"}
	for _, other := range all {
		address, errAddress := netip.ParseAddr(other.Address)
		prefix, errPrefix := netip.ParsePrefix(other.PodCIDR)
		if errAddress != nil || errPrefix != nil {
			return "", fmt.Errorf("node %s has the address %q and the Pod range %q, which cannot be routed", other.Name, other.Address, other.PodCIDR)
		}
		if other.Name != node.Name {
			lines = append(lines, fmt.Sprintf("ip route replace %s via %s", prefix, address))
		}
	}
	rule := fmt.Sprintf("POSTROUTING -s %s ! -d %s -m comment --comment lab -j MASQUERADE", PodSubnet, PodSubnet)
	lines = append(lines, fmt.Sprintf("iptables -t nat -C %s 2>/dev/null || iptables -t nat -A %s", rule, rule))
	return strings.Join(lines, "\n") + "\n", nil
}
