// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/sha1" // NVML's UUIDs are SHA-1 too; nothing here is secret.
	"fmt"
	"slices"
	"strings"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// formatUUID turns parts into a name-based UUID (RFC 9562 version 5 layout).
func formatUUID(parts ...string) string {
	sum := sha1.Sum([]byte(strings.Join(parts, "\x00")))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x50
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func gpuUUID(nodeName string, index int) gpu.UUID {
	return gpu.UUID("GPU-" + formatUUID("gpu", nodeName, fmt.Sprint(index)))
}

// migUUID follows from GPU, place and compute instance and from nothing else,
// as the driver computes it: created again, an instance has its old UUID.
func migUUID(id gpu.UUID, in *InstanceState, c ComputeState) gpu.UUID {
	return gpu.UUID("MIG-" + formatUUID("SMC", string(id),
		fmt.Sprintf("%d+%d", in.Start, in.Size), fmt.Sprintf("ci %d of %d", c.ID, c.Slices)))
}

// instanceID is the driver's id of a GPU instance: its node in a buddy tree
// over the placement grid, 0 for the whole, 1-2 for halves, 3-6 for quarters,
// 7-14 for eighths. Boards with 4 or 12 slots use the same tree with fewer
// levels (a twelfth-grid's quarters are 3 slots wide); nobody has published
// theirs, so only the 8-slot ids are known to be real.
func instanceID(grid int, at gpu.Placement, mirrored bool) int {
	start := at.Start
	if mirrored && at.Size <= grid/2 {
		start = (start + grid/2) % grid
	}
	return grid/at.Size - 1 + start/at.Size
}

// freeInstanceID is instanceID, or the next free number where an irregular
// table puts two disjoint placements on one node of the tree; -1 if none.
func (s *State) freeInstanceID(g *GPUState, at gpu.Placement) int {
	want := instanceID(s.model(g).MemorySlices, at, g.Mirrored)
	for i := range hardware.MaxGPUInstances {
		id := (want + i) % hardware.MaxGPUInstances
		if g.instance(id) == nil {
			return id
		}
	}
	return -1
}

// freeMinor is the lowest device number that no GPU has. The GPU itself still
// holds its own, which is why a switch moves it.
func (s *State) freeMinor() int {
	for n := 0; ; n++ {
		if !slices.ContainsFunc(s.GPUs, func(g GPUState) bool { return g.Minor == n }) {
			return n
		}
	}
}
