// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// ComputeMode implements [hardware.Sharing].
func (n *Node) ComputeMode(ctx context.Context, id gpu.UUID) (hardware.ComputeMode, error) {
	var out hardware.ComputeMode
	err := n.read(ctx, on(hardware.MethodComputeMode, id), func(_ *State, g *GPUState) error {
		out = g.ComputeMode
		return nil
	})
	return out, err
}

// SetComputeMode implements [hardware.Sharing].
func (n *Node) SetComputeMode(ctx context.Context, id gpu.UUID, mode hardware.ComputeMode) error {
	return n.change(ctx, on(hardware.MethodSetComputeMode, id), func(_ *State, g *GPUState) error {
		if !slices.Contains(computeModes, mode) {
			return refuse(hardware.ErrInvalid, "compute mode %q, must be one of %v", mode, computeModes)
		}
		if g.MIGMode == gpu.MIGEnabled && mode != hardware.ComputeModeDefault {
			return refuse(hardware.ErrUnsupported, "compute mode %s with MIG on", mode)
		}
		g.ComputeMode = mode
		return nil
	})
}

// SetTimeSlice implements [hardware.Sharing].
func (n *Node) SetTimeSlice(ctx context.Context, id gpu.UUID, slice hardware.TimeSlice) error {
	return n.change(ctx, on(hardware.MethodSetTimeSlice, id), func(_ *State, g *GPUState) error {
		if !slices.Contains(timeSlices, slice) {
			return refuse(hardware.ErrInvalid, "time slice %q, must be one of %v", slice, timeSlices)
		}
		if g.ComputeMode != hardware.ComputeModeDefault {
			return refuse(hardware.ErrUnsupported, "time slices need the default compute mode, not %s", g.ComputeMode)
		}
		g.TimeSlice = slice
		return nil
	})
}

// limitable refuses where the driver has no memory limits.
func (s *State) limitable(g *GPUState) error {
	switch {
	case !s.driver().Able.MemoryLimits:
		return refuse(hardware.ErrUnsupported, "memory limits need driver R%d, this is %s", branchMemoryLimits, s.Driver.Version)
	case g.MIGMode == gpu.MIGEnabled || g.VGPUGuest:
		return refuse(hardware.ErrUnsupported, "memory limits work on whole GPUs only")
	}
	return nil
}

// MemoryLimits implements [hardware.Sharing].
func (n *Node) MemoryLimits(ctx context.Context, id gpu.UUID, cgroup string) (hardware.MemoryLimits, error) {
	out := hardware.MemoryLimits{HardBytes: hardware.NoMemoryLimit}
	err := n.read(ctx, on(hardware.MethodMemoryLimits, id), func(s *State, g *GPUState) error {
		if err := s.limitable(g); err != nil {
			return err
		}
		if l, ok := g.Limits[cgroup]; ok {
			out.SoftBytes, out.HardBytes = l.Soft, l.Hard
		}
		for _, p := range g.Processes {
			if p.Cgroup == cgroup {
				out.UsedBytes += p.MemoryBytes
			}
		}
		return nil
	})
	return out, err
}

// SetMemoryLimits implements [hardware.Sharing]. No guarantee and no limit
// removes the entry.
func (n *Node) SetMemoryLimits(ctx context.Context, id gpu.UUID, cgroup string, l hardware.MemoryLimits) error {
	return n.change(ctx, on(hardware.MethodSetMemoryLimits, id), func(s *State, g *GPUState) error {
		if err := s.limitable(g); err != nil {
			return err
		}
		total := s.model(g).MemoryBytes
		switch {
		case cgroup == "":
			return refuse(hardware.ErrInvalid, "no cgroup")
		case l.SoftBytes < 0 || l.SoftBytes > total || l.HardBytes < hardware.NoMemoryLimit || l.HardBytes > total:
			return refuse(hardware.ErrInvalid, "soft %d and hard %d must be within the GPU's %d bytes", l.SoftBytes, l.HardBytes, total)
		case l.HardBytes >= 0 && l.SoftBytes > l.HardBytes:
			return refuse(hardware.ErrInvalid, "soft %d is above hard %d", l.SoftBytes, l.HardBytes)
		}
		if l.SoftBytes == 0 && l.HardBytes == hardware.NoMemoryLimit {
			delete(g.Limits, cgroup)
			return nil
		}
		if _, ok := g.Limits[cgroup]; !ok && len(g.Limits) >= maxMemoryLimits {
			return refuse(hardware.ErrInsufficientResources, "%d cgroups have limits already", maxMemoryLimits)
		}
		if g.Limits == nil {
			g.Limits = map[string]MemoryLimits{}
		}
		g.Limits[cgroup] = MemoryLimits{Soft: l.SoftBytes, Hard: l.HardBytes}
		return nil
	})
}
