// SPDX-License-Identifier: Apache-2.0

package hardwaretest

import (
	"context"
	"errors"
	"fmt"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

func checkMode(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		mode, err := n.MIGMode(ctx, g.UUID)
		if err != nil {
			return err
		}
		if mode.Current != g.MIGMode {
			return fmt.Errorf("inventory says MIG mode %q, MIGMode says %q", g.MIGMode, mode.Current)
		}
		if (mode.Current == gpu.MIGUnsupported) != (mode.Pending == gpu.MIGUnsupported) {
			return fmt.Errorf("current %q but pending %q", mode.Current, mode.Pending)
		}
		return nil
	})
}

// checkLive demands that the instances of every GPU are a legal layout and
// that everything about them fits together.
func checkLive(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		live, err := n.GPUInstances(ctx, g.UUID)
		if err != nil {
			return err
		}
		if g.MIGMode != gpu.MIGEnabled && len(live) > 0 {
			return fmt.Errorf("%d instances with MIG mode %q", len(live), g.MIGMode)
		}
		var p problems
		layout, ids := gpu.NewLayout(g.Model), map[int]bool{}
		for _, in := range live {
			if layout, err = layout.With(in.Partition); err != nil {
				p.add(err)
			}
			if ids[in.ID] || in.ID < 0 || in.ID >= hardware.MaxGPUInstances {
				p.add(fmt.Errorf("GI id %d: must be unique and 0 to %d", in.ID, hardware.MaxGPUInstances-1))
			}
			ids[in.ID] = true
			p.add(checkCompute(ctx, n, g, in))
		}
		return p.err()
	})
}

func checkCompute(ctx context.Context, n hardware.Node, g gpu.GPU, in hardware.GPUInstance) error {
	var p problems
	prof, _ := g.Model.Profile(in.Partition.Profile)
	sum := 0
	for _, c := range in.Compute {
		sum += c.ComputeSlices
		uuid, err := n.MIGUUID(ctx, g.UUID, in.ID, c.ID)
		p.add(err)
		if err == nil && (uuid != c.UUID || len(uuid) < 8 || uuid[:4] != "MIG-") {
			p.add(fmt.Errorf("GI %d CI %d: UUID %q in the list, %q alone", in.ID, c.ID, c.UUID, uuid))
		}
		minors, err := n.CapabilityMinors(ctx, g.UUID, in.ID, c.ID)
		p.add(err)
		if want, _ := hardware.CapabilityMinorsOf(g.Minor, in.ID, c.ID); err == nil && minors != want {
			p.add(fmt.Errorf("GI %d CI %d: capability minors %v, want %v", in.ID, c.ID, minors, want))
		}
	}
	if sum > prof.ComputeSlices {
		p.add(fmt.Errorf("GI %d: compute instances take %d of %d slices", in.ID, sum, prof.ComputeSlices))
	}
	return p.err()
}

func checkUnknownInstance(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		want := hardware.ErrNotFound
		if g.MIGMode != gpu.MIGEnabled {
			want = hardware.ErrUnsupported
		}
		const no = hardware.MaxGPUInstances - 1
		live, err := n.GPUInstances(ctx, g.UUID)
		if err != nil {
			return err
		}
		for _, in := range live {
			if in.ID == no {
				return nil
			}
		}
		var p problems
		_, err = n.MIGUUID(ctx, g.UUID, no, 0)
		p.add(expect("MIGUUID", err, want))
		_, err = n.CapabilityMinors(ctx, g.UUID, no, 0)
		p.add(expect("CapabilityMinors", err, want))
		_, err = n.Memory(ctx, hardware.Instance{GPU: g.UUID, GI: no})
		p.add(expect("Memory", err, want))
		return p.err()
	})
}

func checkMemory(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		m, err := n.Memory(ctx, hardware.Whole(g.UUID))
		if errors.Is(err, hardware.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.TotalBytes <= 0 || m.UsedBytes < 0 || m.ReservedBytes < 0 || m.UsedBytes+m.ReservedBytes > m.TotalBytes {
			return fmt.Errorf("memory %+v does not add up", m)
		}
		return nil
	})
}

func plausible(what string, r hardware.Reading, low, high float64) error {
	if v, ok := r.Get(); ok && !(v >= low && v <= high) {
		return fmt.Errorf("%s is %v, must be %v to %v", what, v, low, high)
	}
	return nil
}

func checkUtilization(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		u, err := n.Utilization(ctx, g.UUID)
		if err != nil {
			return err
		}
		if g.MIGMode == gpu.MIGEnabled && (u.GPU.Status != hardware.ReadingUnsupported || u.Memory.Status != hardware.ReadingUnsupported) {
			return fmt.Errorf("utilization %+v with MIG on: it means nothing there", u)
		}
		return errors.Join(plausible("GPU utilization", u.GPU, 0, 100), plausible("memory utilization", u.Memory, 0, 100))
	})
}

func checkProcesses(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		procs, err := n.Processes(ctx, g.UUID)
		if err != nil {
			return err
		}
		for _, p := range procs {
			whole := p.GI == hardware.NoInstance
			if p.PID < 1 || p.MemoryBytes < gpu.Unknown || whole != (p.CI == hardware.NoInstance) {
				return fmt.Errorf("process %+v is malformed", p)
			}
			if !whole && g.MIGMode != gpu.MIGEnabled {
				return fmt.Errorf("process %d is in GI %d with MIG off", p.PID, p.GI)
			}
		}
		return nil
	})
}

func checkHealth(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		h, err := n.Health(ctx, g.UUID)
		if err != nil {
			return err
		}
		return errors.Join(
			plausible("temperature", h.TemperatureCelsius, -50, 200),
			plausible("slowdown temperature", h.SlowdownCelsius, 0, 200),
			plausible("power", h.PowerWatts, 0, 10000),
			plausible("power limit", h.PowerLimitWatts, 1, 10000),
			plausible("corrected ECC errors", h.CorrectedECC, 0, 1e18),
			plausible("uncorrected ECC errors", h.UncorrectedECC, 0, 1e18),
		)
	})
}

func checkEventsEnd(ctx context.Context, n hardware.Node) error {
	sub, cancel := context.WithCancel(ctx)
	events, err := n.Events(sub)
	cancel()
	if err != nil {
		return err
	}
	for {
		select {
		case _, open := <-events:
			if !open {
				return nil
			}
		case <-ctx.Done():
			return errors.New("the event channel stays open after its context ended")
		}
	}
}
