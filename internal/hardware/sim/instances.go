// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// GPUInstances implements [hardware.MIG].
func (n *Node) GPUInstances(ctx context.Context, id gpu.UUID) ([]hardware.GPUInstance, error) {
	var out []hardware.GPUInstance
	err := n.read(ctx, on(hardware.MethodGPUInstances, id), func(_ *State, g *GPUState) error {
		for i := range g.Instances {
			out = append(out, g.live(&g.Instances[i]))
		}
		return nil
	})
	slices.SortFunc(out, func(a, b hardware.GPUInstance) int { return gpu.ComparePartitions(a.Partition, b.Partition) })
	return out, err
}

func (g *GPUState) live(in *InstanceState) hardware.GPUInstance {
	out := hardware.GPUInstance{ID: in.ID, Partition: in.partition()}
	for _, c := range in.Compute {
		out.Compute = append(out.Compute, g.liveCompute(in, c))
	}
	return out
}

func (g *GPUState) liveCompute(in *InstanceState, c ComputeState) hardware.ComputeInstance {
	return hardware.ComputeInstance{ID: c.ID, ComputeSlices: c.Slices, UUID: migUUID(g.UUID, in, c)}
}

// CreateGPUInstance implements [hardware.MIG].
func (n *Node) CreateGPUInstance(ctx context.Context, id gpu.UUID, p gpu.Partition) (hardware.GPUInstance, error) {
	var out hardware.GPUInstance
	err := n.change(ctx, on(hardware.MethodCreateGPUInstance, id), func(s *State, g *GPUState) error {
		in, err := s.createInstance(g, p)
		if err == nil {
			out = g.live(in)
		}
		return err
	})
	return out, err
}

// createInstance asks the law and translates its refusal into the driver's.
func (s *State) createInstance(g *GPUState, p gpu.Partition) (*InstanceState, error) {
	if err := migOn(g); err != nil {
		return nil, err
	}
	l, err := s.layout(g)
	if err != nil {
		return nil, err
	}
	if _, err := l.With(p); err != nil {
		var r *gpu.RefusedError
		if errors.As(err, &r) && (r.Reason == gpu.RefusedUnknownProfile || r.Reason == gpu.RefusedPlacement) {
			return nil, refuse(hardware.ErrInvalid, "%v", r)
		}
		return nil, refuse(hardware.ErrInsufficientResources, "%v", err)
	}
	gi := s.freeInstanceID(g, p.Placement)
	if gi < 0 {
		return nil, refuse(hardware.ErrInsufficientResources, "all %d instance ids are taken", hardware.MaxGPUInstances)
	}
	s.Sequence++
	g.Instances = append(g.Instances, InstanceState{
		ID: gi, Profile: p.Profile, Start: p.Placement.Start, Size: p.Placement.Size, Serial: s.Sequence,
	})
	s.record(EventState{Kind: hardware.EventMIGChange, GPU: g.UUID, GI: gi, CI: hardware.NoInstance})
	return &g.Instances[len(g.Instances)-1], nil
}

func migOn(g *GPUState) error {
	switch g.MIGMode {
	case gpu.MIGEnabled:
		return nil
	case gpu.MIGUnsupported:
		return refuse(hardware.ErrUnsupported, "%s", noMIG(g))
	case gpu.MIGDisabled:
	}
	return refuse(hardware.ErrUnsupported, "MIG mode is off")
}

// DestroyGPUInstance implements [hardware.MIG].
func (n *Node) DestroyGPUInstance(ctx context.Context, id gpu.UUID, gi int) error {
	c := onInstance(hardware.MethodDestroyGPUInstance, hardware.Instance{GPU: id, GI: gi})
	return n.change(ctx, c, func(s *State, g *GPUState) error {
		in, err := findInstance(g, gi)
		if err != nil {
			return err
		}
		if len(in.Compute) > 0 {
			return refuse(hardware.ErrBusy, "GI %d has compute instance %d", gi, in.Compute[0].ID)
		}
		if err := subscribed(in); err != nil {
			return err
		}
		g.Instances = slices.DeleteFunc(g.Instances, func(o InstanceState) bool { return o.ID == gi })
		s.record(EventState{Kind: hardware.EventMIGChange, GPU: id, GI: gi, CI: hardware.NoInstance})
		return nil
	})
}

func findInstance(g *GPUState, gi int) (*InstanceState, error) {
	if err := migOn(g); err != nil {
		return nil, err
	}
	in := g.instance(gi)
	if in == nil {
		return nil, refuse(hardware.ErrNotFound, "no GI %d", gi)
	}
	return in, nil
}

// subscribed refuses while a client holds the instance. A client of the whole
// GPU does not count here; it keeps only the mode from changing.
func subscribed(in *InstanceState) error {
	if len(in.Clients) > 0 {
		return refuse(hardware.ErrBusy, "GI %d is held by %s", in.ID, in.Clients[0])
	}
	return nil
}

// CreateComputeInstance implements [hardware.MIG].
func (n *Node) CreateComputeInstance(ctx context.Context, id gpu.UUID, gi int) (hardware.ComputeInstance, error) {
	var out hardware.ComputeInstance
	c := onInstance(hardware.MethodCreateComputeInstance, hardware.Instance{GPU: id, GI: gi})
	err := n.change(ctx, c, func(s *State, g *GPUState) error {
		in, err := findInstance(g, gi)
		if err != nil {
			return err
		}
		if len(in.Compute) > 0 {
			return refuse(hardware.ErrInsufficientResources, "GI %d has compute instance %d", gi, in.Compute[0].ID)
		}
		prof, _ := s.model(g).Profile(in.Profile)
		in.Compute = []ComputeState{{ID: 0, Slices: prof.ComputeSlices}}
		out = g.liveCompute(in, in.Compute[0])
		s.record(EventState{Kind: hardware.EventMIGChange, GPU: id, GI: gi, CI: 0})
		return nil
	})
	return out, err
}

// DestroyComputeInstance implements [hardware.MIG].
func (n *Node) DestroyComputeInstance(ctx context.Context, id gpu.UUID, gi, ci int) error {
	c := onInstance(hardware.MethodDestroyComputeInstance, hardware.Instance{GPU: id, GI: gi})
	return n.change(ctx, c, func(s *State, g *GPUState) error {
		in, err := findCompute(g, gi, ci)
		if err != nil {
			return err
		}
		for _, p := range g.Processes {
			if p.GI == gi && p.CI == ci {
				return refuse(hardware.ErrBusy, "process %d runs in GI %d CI %d", p.PID, gi, ci)
			}
		}
		if err := subscribed(in); err != nil {
			return err
		}
		in.Compute = slices.DeleteFunc(in.Compute, func(o ComputeState) bool { return o.ID == ci })
		s.record(EventState{Kind: hardware.EventMIGChange, GPU: id, GI: gi, CI: ci})
		return nil
	})
}

func findCompute(g *GPUState, gi, ci int) (*InstanceState, error) {
	in, err := findInstance(g, gi)
	if err != nil {
		return nil, err
	}
	if !in.hasCompute(ci) {
		return nil, refuse(hardware.ErrNotFound, "GI %d has no compute instance %d", gi, ci)
	}
	return in, nil
}

// MIGUUID implements [hardware.MIG].
func (n *Node) MIGUUID(ctx context.Context, id gpu.UUID, gi, ci int) (gpu.UUID, error) {
	var out gpu.UUID
	c := onInstance(hardware.MethodMIGUUID, hardware.Instance{GPU: id, GI: gi})
	err := n.read(ctx, c, func(_ *State, g *GPUState) error {
		in, err := findCompute(g, gi, ci)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(in.Compute, func(o ComputeState) bool { return o.ID == ci })
		out = migUUID(id, in, in.Compute[at])
		return nil
	})
	return out, err
}

// CapabilityMinors implements [hardware.MIG].
func (n *Node) CapabilityMinors(ctx context.Context, id gpu.UUID, gi, ci int) (hardware.CapabilityMinors, error) {
	var out hardware.CapabilityMinors
	c := onInstance(hardware.MethodCapabilityMinors, hardware.Instance{GPU: id, GI: gi})
	err := n.read(ctx, c, func(_ *State, g *GPUState) error {
		if _, err := findCompute(g, gi, ci); err != nil {
			return err
		}
		out, _ = hardware.CapabilityMinorsOf(g.Minor, gi, ci)
		return nil
	})
	return out, err
}
