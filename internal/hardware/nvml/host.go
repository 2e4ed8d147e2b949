// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// host reads what the kernel knows and NVML does not tell.
type host struct{ root string }

func (h host) path(parts ...string) string {
	return filepath.Join(append([]string{"/", h.root}, parts...)...)
}

func (h host) bootID() (string, error) {
	data, err := os.ReadFile(h.path("proc/sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(data)), err
}

// numaNode is -1 where the machine has no NUMA or the file is missing.
func (h host) numaNode(pciBusID string) int {
	data, err := os.ReadFile(h.path("sys/bus/pci/devices", pciBusID, "numa_node"))
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// pcieRoot is the root complex above a device, "pci0000:17": the first part of
// the device's real path that names one. Empty if unknown.
func (h host) pcieRoot(pciBusID string) string {
	real, err := filepath.EvalSymlinks(h.path("sys/bus/pci/devices", pciBusID))
	if err != nil {
		return ""
	}
	for part := range strings.SplitSeq(filepath.ToSlash(real), "/") {
		if domain, ok := strings.CutPrefix(part, "pci"); ok && strings.Contains(domain, ":") {
			return part
		}
	}
	return ""
}
