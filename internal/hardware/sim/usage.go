// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"slices"
	"time"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// target finds a GPU instance, or nil for the whole GPU.
func target(g *GPUState, gi int) (*InstanceState, error) {
	if gi == hardware.NoInstance {
		return nil, nil
	}
	return findInstance(g, gi)
}

// Memory implements [hardware.Usage]. Used memory is that of the processes
// plus the load's own; a load cannot exceed what there is.
func (n *Node) Memory(ctx context.Context, of hardware.Instance) (hardware.Memory, error) {
	var out hardware.Memory
	err := n.read(ctx, onInstance(hardware.MethodMemory, of), func(s *State, g *GPUState) error {
		in, err := target(g, of.GI)
		if err != nil {
			return err
		}
		if in != nil && len(in.Compute) == 0 {
			return refuse(hardware.ErrNotFound, "GI %d has no compute instance to ask", of.GI)
		}
		out = s.memory(g, in)
		if out.TotalBytes == 0 {
			return refuse(hardware.ErrUnsupported, "%s has unified memory", g.Model)
		}
		return nil
	})
	return out, err
}

func (s *State) memory(g *GPUState, in *InstanceState) hardware.Memory {
	m := s.model(g)
	var out hardware.Memory
	if in != nil {
		prof, _ := m.Profile(in.Profile)
		out.TotalBytes = prof.MemoryBytes
		out.UsedBytes = g.processBytes(in.ID) + in.Load.bytes()
	} else {
		out.TotalBytes = m.MemoryBytes
		// Firmware and page tables take under one percent.
		out.ReservedBytes = m.MemoryBytes / 128
		out.UsedBytes = g.processBytes(hardware.NoInstance) + g.Load.bytes()
		for i := range g.Instances {
			out.UsedBytes += g.processBytes(g.Instances[i].ID) + g.Instances[i].Load.bytes()
		}
	}
	out.UsedBytes = min(out.UsedBytes, out.TotalBytes-out.ReservedBytes)
	return out
}

func (g *GPUState) processBytes(gi int) int64 {
	var sum int64
	for _, p := range g.Processes {
		if p.GI == gi {
			sum += p.MemoryBytes
		}
	}
	return sum
}

func (l *Load) bytes() int64 {
	if l == nil {
		return 0
	}
	return l.MemoryBytes
}

// Utilization implements [hardware.Usage].
func (n *Node) Utilization(ctx context.Context, id gpu.UUID) (hardware.Utilization, error) {
	var out hardware.Utilization
	err := n.read(ctx, on(hardware.MethodUtilization, id), func(_ *State, g *GPUState) error {
		if g.MIGMode == gpu.MIGEnabled {
			no := hardware.Reading{Status: hardware.ReadingUnsupported}
			out = hardware.Utilization{GPU: no, Memory: no}
			return nil
		}
		load := g.load()
		out = hardware.Utilization{GPU: load.reading(load.GPU), Memory: load.reading(load.DRAM)}
		return nil
	})
	return out, err
}

func (g *GPUState) load() Load {
	if g.Load == nil {
		return Load{}
	}
	return *g.Load
}

func (l Load) reading(v float64) hardware.Reading {
	if l.Unmeasurable {
		return hardware.Reading{}
	}
	return hardware.Valid(v)
}

// sample is a snapshot of a load.
type sample struct {
	of     hardware.Instance
	serial uint64
	at     time.Time
	load   Load
}

// Instance implements [hardware.Sample].
func (s *sample) Instance() hardware.Instance { return s.of }

// Close implements [hardware.Sample].
func (*sample) Close() {}

// Sample implements [hardware.Usage].
func (n *Node) Sample(ctx context.Context, of hardware.Instance) (hardware.Sample, error) {
	var out *sample
	err := n.read(ctx, onInstance(hardware.MethodSample, of), func(s *State, g *GPUState) error {
		if !hasActivity(s.model(g).Architecture) || !s.driver().Able.Activity {
			return refuse(hardware.ErrUnsupported, "performance counters (GPM) need Hopper or newer and driver R%d", branchActivity)
		}
		in, err := target(g, of.GI)
		if err != nil {
			return err
		}
		out = &sample{of: of, at: n.cfg.Clock(), load: s.activity(g, in)}
		if in != nil {
			out.serial = in.Serial
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func hasActivity(a gpu.Architecture) bool {
	return a == gpu.Hopper || a == gpu.Blackwell || a == gpu.BlackwellUltra
}

// activity is the load of an instance, or of the whole GPU: under MIG the sum
// of its instances, each weighted with the SMs it has.
func (s *State) activity(g *GPUState, in *InstanceState) Load {
	switch {
	case in != nil && len(in.Compute) == 0:
		return Load{Unmeasurable: true} // counters report nothing without a compute instance
	case in != nil:
		if in.Load == nil {
			return Load{}
		}
		return *in.Load
	case g.MIGMode != gpu.MIGEnabled:
		return g.load()
	}
	m, sum := s.model(g), Load{}
	for i := range g.Instances {
		l := g.Instances[i].Load
		if l == nil {
			continue
		}
		prof, _ := m.Profile(g.Instances[i].Profile)
		compute := share(prof.Multiprocessors, m.Multiprocessors, prof.ComputeSlices, m.ComputeSlices)
		sum.SM += l.SM * compute
		sum.Occupancy += l.Occupancy * compute
		sum.DRAM += l.DRAM * float64(prof.MemorySlices) / float64(m.MemorySlices)
		sum.Unmeasurable = sum.Unmeasurable || l.Unmeasurable
	}
	return sum
}

// share is the part of the SMs, or of the compute slices if SMs are unknown.
func share(sms, of, computeSlices, ofSlices int) float64 {
	if sms > 0 && of > 0 {
		return float64(sms) / float64(of)
	}
	return float64(computeSlices) / float64(ofSlices)
}

// Activity implements [hardware.Usage]: the mean of the loads at both samples.
func (n *Node) Activity(ctx context.Context, first, second hardware.Sample) (hardware.Activity, error) {
	a, okA := first.(*sample)
	b, okB := second.(*sample)
	if !okA || !okB || a == nil || b == nil {
		return hardware.Activity{}, n.fail(on(hardware.MethodActivity, ""), hardware.ErrInvalid, "samples of another implementation")
	}
	var out hardware.Activity
	err := n.read(ctx, onInstance(hardware.MethodActivity, b.of), func(*State, *GPUState) error {
		switch {
		case a.of != b.of || a.serial != b.serial:
			return refuse(hardware.ErrInvalid, "samples of different instances")
		case b.at.Sub(a.at) < hardware.MinSampleInterval:
			return refuse(hardware.ErrInvalid, "samples are %v apart, need %v", b.at.Sub(a.at), hardware.MinSampleInterval)
		}
		mean := Load{Unmeasurable: a.load.Unmeasurable || b.load.Unmeasurable}
		out.SM = mean.reading((a.load.SM + b.load.SM) / 2)
		out.Occupancy = mean.reading((a.load.Occupancy + b.load.Occupancy) / 2)
		out.DRAM = mean.reading((a.load.DRAM + b.load.DRAM) / 2)
		return nil
	})
	return out, err
}

// Processes implements [hardware.Usage].
func (n *Node) Processes(ctx context.Context, id gpu.UUID) ([]hardware.Process, error) {
	var out []hardware.Process
	err := n.read(ctx, on(hardware.MethodProcesses, id), func(_ *State, g *GPUState) error {
		for _, p := range g.Processes {
			sm := hardware.Valid(p.SMPercent)
			if g.MIGMode == gpu.MIGEnabled {
				sm = hardware.Reading{Status: hardware.ReadingUnsupported}
			}
			out = append(out, hardware.Process{PID: p.PID, MemoryBytes: p.MemoryBytes, SM: sm, GI: p.GI, CI: p.CI})
		}
		return nil
	})
	slices.SortFunc(out, func(a, b hardware.Process) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.GI, b.GI), cmp.Compare(a.CI, b.CI))
	})
	return out, err
}
