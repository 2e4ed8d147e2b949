// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// Driver branches that brought a feature.
const (
	branchActivity       = 525
	branchRecoveryAction = 560
	branchMemoryLimits   = 615
	branchMPSNamespaces  = 615
)

func (s *State) driver() hardware.Driver {
	d := hardware.Driver{Version: s.Driver.Version, CUDA: s.Driver.CUDA}
	major := d.Major()
	d.Able = hardware.Abilities{
		Activity:       major >= branchActivity,
		RecoveryAction: major >= branchRecoveryAction,
		MemoryLimits:   major >= branchMemoryLimits,
		MPSNamespaces:  major >= branchMPSNamespaces,
	}
	return d
}

// Driver implements [hardware.Inventory].
func (n *Node) Driver(ctx context.Context) (hardware.Driver, error) {
	var d hardware.Driver
	err := n.read(ctx, on(hardware.MethodDriver, ""), func(s *State, _ *GPUState) error {
		d = s.driver()
		return nil
	})
	return d, err
}

// BootID implements [hardware.Inventory].
func (n *Node) BootID(ctx context.Context) (string, error) {
	var id string
	err := n.read(ctx, on(hardware.MethodBootID, ""), func(s *State, _ *GPUState) error {
		id = s.BootID()
		return nil
	})
	return id, err
}

// GPUs implements [hardware.Inventory].
func (n *Node) GPUs(ctx context.Context) ([]gpu.GPU, error) {
	var out []gpu.GPU
	err := n.read(ctx, on(hardware.MethodGPUs, ""), func(s *State, _ *GPUState) error {
		for i := range s.GPUs {
			if g := &s.GPUs[i]; !g.Lost && g.Hidden == "" {
				out = append(out, s.discovered(g))
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b gpu.GPU) int { return cmp.Compare(a.PCIBusID, b.PCIBusID) })
	return out, err
}

func (s *State) discovered(g *GPUState) gpu.GPU {
	return gpu.GPU{
		UUID: g.UUID, Minor: g.Minor, PCIBusID: g.PCIBusID, PCIeRoot: g.PCIeRoot, NUMANode: g.NUMANode,
		Model: s.model(g), Brand: "Nvidia", MIGMode: g.MIGMode, VGPUGuest: g.VGPUGuest, AddressingMode: "None",
	}
}

// Hidden implements [hardware.Inventory].
func (n *Node) Hidden(ctx context.Context) ([]hardware.HiddenGPU, error) {
	var out []hardware.HiddenGPU
	err := n.read(ctx, on(hardware.MethodHidden, ""), func(s *State, _ *GPUState) error {
		for i := range s.GPUs {
			g := &s.GPUs[i]
			reason := g.Hidden
			if g.Lost {
				reason = "fell off the bus"
			}
			if reason != "" {
				out = append(out, hardware.HiddenGPU{UUID: g.UUID, PCIBusID: g.PCIBusID, Reason: reason})
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b hardware.HiddenGPU) int { return cmp.Compare(a.PCIBusID, b.PCIBusID) })
	return out, err
}
