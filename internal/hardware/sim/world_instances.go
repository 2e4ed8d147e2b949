// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// CreateForeign makes an instance as an administrator with nvidia-smi would:
// behind Reslice's back. Each size of compute is a compute instance of so many
// compute slices; none leaves the GPU instance without.
func (n *Node) CreateForeign(id gpu.UUID, p gpu.Partition, compute ...int) (hardware.GPUInstance, error) {
	var out hardware.GPUInstance
	err := n.operate("create foreign instance", id, func(s *State, g *GPUState) error {
		in, err := s.createInstance(g, p)
		if err != nil {
			return err
		}
		for i, size := range compute {
			in.Compute = append(in.Compute, ComputeState{ID: i, Slices: size})
		}
		out = g.live(in)
		return nil
	})
	return out, err
}

// automaticStarts is the order in which the driver tries starts when a create
// call names no placement, by size on the 8-slot grid. It packs from the right
// for 1g and from the middle for larger ones, which is why a list of profiles
// that has a layout can fail halfway.
var automaticStarts = map[int][]int{
	1: {6, 4, 5, 0, 1, 2, 3},
	2: {4, 0, 2, 6},
	4: {4, 0},
	8: {0},
}

// CreateAutomatic creates an instance where the driver would, with no
// placement given, and the compute instance that spans it: what nvidia-smi mig
// -cgi -C does. Boards with another grid try starts from the right, since
// nobody has published theirs.
func (n *Node) CreateAutomatic(id gpu.UUID, profile gpu.ProfileID) (hardware.GPUInstance, error) {
	var out hardware.GPUInstance
	err := n.operate("create instance automatically", id, func(s *State, g *GPUState) error {
		m := s.model(g)
		prof, ok := m.Profile(profile)
		if !ok {
			return fmt.Errorf("profile %d: %w", profile, hardware.ErrInvalid)
		}
		err := refuse(hardware.ErrInsufficientResources, "profile %d has no free placement", profile)
		for _, start := range startsOf(m.MemorySlices, prof) {
			p := gpu.Partition{Profile: profile, Placement: gpu.Placement{Start: start, Size: prof.MemorySlices}}
			if !slices.Contains(prof.Placements, p.Placement) {
				continue
			}
			var in *InstanceState
			if in, err = s.createInstance(g, p); err == nil {
				in.Compute = []ComputeState{{ID: 0, Slices: prof.ComputeSlices}}
				out = g.live(in)
				return nil
			}
		}
		return err
	})
	return out, err
}

func startsOf(grid int, prof gpu.Profile) []int {
	if grid == 8 {
		return automaticStarts[prof.MemorySlices]
	}
	var out []int
	for _, p := range slices.Backward(prof.Placements) {
		out = append(out, p.Start)
	}
	return out
}

// AddProcess starts a process on a GPU or in a compute instance. Memory that
// is not there is refused, as the allocation would be; so is memory beyond the
// hard limit of its cgroup.
func (n *Node) AddProcess(id gpu.UUID, p ProcessState) error {
	return n.operate("add process", id, func(s *State, g *GPUState) error {
		if err := g.checkTarget(p.GI, p.CI); err != nil {
			return err
		}
		free := s.memory(g, g.instance(p.GI))
		if p.MemoryBytes > free.TotalBytes-free.ReservedBytes-free.UsedBytes {
			return fmt.Errorf("process %d: out of memory: %w", p.PID, hardware.ErrInsufficientResources)
		}
		if l, ok := g.Limits[p.Cgroup]; ok && l.Hard >= 0 {
			used := p.MemoryBytes
			for _, o := range g.Processes {
				if o.Cgroup == p.Cgroup {
					used += o.MemoryBytes
				}
			}
			if used > l.Hard {
				return fmt.Errorf("process %d: beyond the limit of its cgroup: %w", p.PID, hardware.ErrInsufficientResources)
			}
		}
		g.Processes = append(g.Processes, p)
		return nil
	})
}

// RemoveProcess ends a process wherever it runs on the GPU; it may be gone
// already.
func (n *Node) RemoveProcess(id gpu.UUID, pid int) error {
	return n.operate("remove process", id, func(_ *State, g *GPUState) error {
		g.Processes = slices.DeleteFunc(g.Processes, func(p ProcessState) bool { return p.PID == pid })
		return nil
	})
}

// SetLoad says how busy a GPU or instance is from now on.
func (n *Node) SetLoad(of hardware.Instance, l Load) error {
	return n.operate("set load", of.GPU, func(_ *State, g *GPUState) error {
		if of.GI == hardware.NoInstance {
			g.Load = &l
			return nil
		}
		in := g.instance(of.GI)
		if in == nil {
			return fmt.Errorf("GI %d: %w", of.GI, hardware.ErrNotFound)
		}
		in.Load = &l
		return nil
	})
}

// Subscribe makes a foreign client, such as an exporter, hold the GPU or an
// instance; Unsubscribe lets it go.
func (n *Node) Subscribe(of hardware.Instance, client string) error {
	return n.clients("subscribe", of, func(have []string) []string { return append(have, client) })
}

// Unsubscribe ends what Subscribe began.
func (n *Node) Unsubscribe(of hardware.Instance, client string) error {
	return n.clients("unsubscribe", of, func(have []string) []string {
		return slices.DeleteFunc(have, func(c string) bool { return c == client })
	})
}

func (n *Node) clients(what string, of hardware.Instance, fn func([]string) []string) error {
	return n.operate(what, of.GPU, func(_ *State, g *GPUState) error {
		if of.GI == hardware.NoInstance {
			g.Clients = fn(g.Clients)
			return nil
		}
		in := g.instance(of.GI)
		if in == nil {
			return fmt.Errorf("GI %d: %w", of.GI, hardware.ErrNotFound)
		}
		in.Clients = fn(in.Clients)
		return nil
	})
}
