// SPDX-License-Identifier: Apache-2.0

package hardwaretest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// free runs a check on every GPU with MIG on and no instances.
func free(ctx context.Context, n hardware.Node, fn func(gpu.GPU) error) error {
	return each(ctx, n, func(g gpu.GPU) error {
		if g.MIGMode != gpu.MIGEnabled {
			return nil
		}
		live, err := n.GPUInstances(ctx, g.UUID)
		if err != nil || len(live) > 0 {
			return err
		}
		return fn(g)
	})
}

// checkEveryPartition walks every profile and placement of a GPU through its
// life, twice, to see that the UUID comes back.
func checkEveryPartition(ctx context.Context, n hardware.Node) error {
	return free(ctx, n, func(g gpu.GPU) error {
		seen := map[gpu.UUID]gpu.Partition{}
		for _, part := range g.Model.Partitions() {
			first, err := life(ctx, n, g, part)
			if err != nil {
				return fmt.Errorf("%v: %w", part, err)
			}
			again, err := life(ctx, n, g, part)
			if err != nil {
				return fmt.Errorf("%v again: %w", part, err)
			}
			if first != again {
				return fmt.Errorf("%v: UUID %s, after re-creation %s", part, first, again)
			}
			if other, ok := seen[first]; ok && other.Placement != part.Placement {
				return fmt.Errorf("%v and %v have the same UUID %s", other, part, first)
			}
			seen[first] = part
		}
		return nil
	})
}

// life creates one partition on an empty GPU, tries everything that must be
// refused, and destroys it.
func life(ctx context.Context, n hardware.Node, g gpu.GPU, part gpu.Partition) (gpu.UUID, error) {
	gi, err := n.CreateGPUInstance(ctx, g.UUID, part)
	if err != nil {
		return "", err
	}
	if gi.Partition != part || len(gi.Compute) > 0 {
		return "", fmt.Errorf("created %+v", gi)
	}
	_, err = n.CreateGPUInstance(ctx, g.UUID, part)
	if err := expect("the same placement twice", err, hardware.ErrInsufficientResources); err != nil {
		return "", err
	}
	ci, err := n.CreateComputeInstance(ctx, g.UUID, gi.ID)
	if err != nil {
		return "", err
	}
	if err := inspect(ctx, n, g, part, ci); err != nil {
		return "", err
	}
	_, err = n.CreateComputeInstance(ctx, g.UUID, gi.ID)
	p := problems{}
	p.add(expect("a second compute instance", err, hardware.ErrInsufficientResources))
	p.add(expect("destroying a GI with a CI", n.DestroyGPUInstance(ctx, g.UUID, gi.ID), hardware.ErrBusy))
	p.add(n.DestroyComputeInstance(ctx, g.UUID, gi.ID, ci.ID))
	p.add(expect("destroying a CI twice", n.DestroyComputeInstance(ctx, g.UUID, gi.ID, ci.ID), hardware.ErrNotFound))
	p.add(n.DestroyGPUInstance(ctx, g.UUID, gi.ID))
	p.add(expect("destroying a GI twice", n.DestroyGPUInstance(ctx, g.UUID, gi.ID), hardware.ErrNotFound))
	left, err := n.GPUInstances(ctx, g.UUID)
	p.add(err)
	if len(left) > 0 {
		p.add(fmt.Errorf("%d instances are left", len(left)))
	}
	return ci.UUID, p.err()
}

// inspect reads back the one instance that must be there.
func inspect(ctx context.Context, n hardware.Node, g gpu.GPU, part gpu.Partition, ci hardware.ComputeInstance) error {
	live, err := n.GPUInstances(ctx, g.UUID)
	if err != nil {
		return err
	}
	if len(live) != 1 || live[0].Partition != part || len(live[0].Compute) != 1 || live[0].Compute[0] != ci {
		return fmt.Errorf("the list shows %+v", live)
	}
	prof, _ := g.Model.Profile(part.Profile)
	if ci.ComputeSlices != prof.ComputeSlices {
		return fmt.Errorf("the compute instance has %d of %d slices", ci.ComputeSlices, prof.ComputeSlices)
	}
	mem, err := n.Memory(ctx, hardware.Instance{GPU: g.UUID, GI: live[0].ID})
	if err != nil {
		return err
	}
	if mem.TotalBytes <= 0 || mem.TotalBytes > prof.MemoryBytes {
		return fmt.Errorf("the instance shows %d bytes, its profile %d", mem.TotalBytes, prof.MemoryBytes)
	}
	return checkCompute(ctx, n, g, live[0])
}

// checkFill creates what the law accepts and tries what it refuses: node and
// law must agree on each step. Two orders reach different layouts.
func checkFill(ctx context.Context, n hardware.Node) error {
	return free(ctx, n, func(g gpu.GPU) error {
		parts := g.Model.Partitions()
		for _, step := range []int{1, 7} {
			if err := fill(ctx, n, g, parts, step); err != nil {
				return err
			}
			if err := clearGPU(ctx, n, g); err != nil {
				return err
			}
		}
		return nil
	})
}

func fill(ctx context.Context, n hardware.Node, g gpu.GPU, parts []gpu.Partition, step int) error {
	layout := gpu.NewLayout(g.Model)
	for i := range parts {
		part := parts[i*step%len(parts)]
		_, err := n.CreateGPUInstance(ctx, g.UUID, part)
		next, refused := layout.With(part)
		if (err == nil) != (refused == nil) {
			return fmt.Errorf("%v into %v: node says %w, law says %w", part, layout, err, refused)
		}
		if err != nil && !errors.Is(err, hardware.ErrInsufficientResources) {
			return fmt.Errorf("%v into %v: %w", part, layout, err)
		}
		if refused == nil {
			layout = next
		}
	}
	return nil
}

func clearGPU(ctx context.Context, n hardware.Node, g gpu.GPU) error {
	live, err := n.GPUInstances(ctx, g.UUID)
	if err != nil {
		return err
	}
	for _, in := range live {
		for _, c := range in.Compute {
			if err := n.DestroyComputeInstance(ctx, g.UUID, in.ID, c.ID); err != nil {
				return err
			}
		}
		if err := n.DestroyGPUInstance(ctx, g.UUID, in.ID); err != nil {
			return err
		}
	}
	return nil
}

func checkImpossible(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		part := gpu.Partition{Profile: 9999, Placement: gpu.Placement{Start: 0, Size: 1}}
		_, err := n.CreateGPUInstance(ctx, g.UUID, part)
		if g.MIGMode != gpu.MIGEnabled {
			return expect("creation with MIG off", err, hardware.ErrUnsupported)
		}
		var p problems
		p.add(expect("an unknown profile", err, hardware.ErrInvalid))
		part = g.Model.Partitions()[0]
		part.Placement.Start = g.Model.MemorySlices
		_, err = n.CreateGPUInstance(ctx, g.UUID, part)
		p.add(expect("a placement beyond the GPU", err, hardware.ErrInvalid))
		_, err = n.CreateComputeInstance(ctx, g.UUID, hardware.MaxGPUInstances-1)
		p.add(expect("a compute instance in nothing", err, hardware.ErrNotFound))
		return p.err()
	})
}

func checkModeRules(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		if g.MIGMode == gpu.MIGUnsupported {
			_, err := n.SetMIGMode(ctx, g.UUID, true)
			return expect("MIG mode without MIG", err, hardware.ErrUnsupported)
		}
		if live, err := n.GPUInstances(ctx, g.UUID); err != nil || len(live) > 0 {
			return err
		}
		on := g.MIGMode == gpu.MIGEnabled
		if err := setMode(ctx, n, g, on, hardware.ActivationDone); err != nil {
			return err
		}
		if on {
			if err := instanceBlocksMode(ctx, n, g); err != nil {
				return err
			}
		}
		want := hardware.ActivationDone
		if g.Model.Architecture.ModeSwitchNeedsReset() {
			want = hardware.ActivationResetRequired
		}
		return errors.Join(setMode(ctx, n, g, !on, want), setMode(ctx, n, g, on, hardware.ActivationDone))
	})
}

// setMode asks for a mode and checks that both readings follow.
func setMode(ctx context.Context, n hardware.Node, g gpu.GPU, on bool, want hardware.Activation) error {
	before, err := n.MIGMode(ctx, g.UUID)
	if err != nil {
		return err
	}
	got, err := n.SetMIGMode(ctx, g.UUID, on)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("setting MIG to %t: %s, want %s", on, got, want)
	}
	mode, expected := gpu.MIGDisabled, before
	if on {
		mode = gpu.MIGEnabled
	}
	switch want {
	case hardware.ActivationDone:
		expected = hardware.MIGModeState{Current: mode, Pending: mode}
	case hardware.ActivationResetRequired:
		expected.Pending = mode
	case hardware.ActivationInUse:
	}
	after, err := n.MIGMode(ctx, g.UUID)
	if err == nil && after != expected {
		err = fmt.Errorf("after setting MIG to %t: %+v, want %+v", on, after, expected)
	}
	return err
}

func instanceBlocksMode(ctx context.Context, n hardware.Node, g gpu.GPU) error {
	if _, err := n.CreateGPUInstance(ctx, g.UUID, g.Model.Partitions()[0]); err != nil {
		return err
	}
	return errors.Join(setMode(ctx, n, g, false, hardware.ActivationInUse), clearGPU(ctx, n, g))
}

func checkComputeMode(ctx context.Context, n hardware.Node) error {
	return each(ctx, n, func(g gpu.GPU) error {
		before, err := n.ComputeMode(ctx, g.UUID)
		if err != nil {
			return err
		}
		if err := n.SetComputeMode(ctx, g.UUID, "no such mode"); !errors.Is(err, hardware.ErrInvalid) {
			return fmt.Errorf("a mode that does not exist: %w", err)
		}
		err = n.SetComputeMode(ctx, g.UUID, hardware.ComputeModeExclusiveProcess)
		if errors.Is(err, hardware.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		after, err := n.ComputeMode(ctx, g.UUID)
		if err == nil && after != hardware.ComputeModeExclusiveProcess {
			err = fmt.Errorf("compute mode is %s after setting it", after)
		}
		return errors.Join(err, n.SetComputeMode(ctx, g.UUID, before))
	})
}

func checkMIGEvents(ctx context.Context, n hardware.Node) error {
	return free(ctx, n, func(g gpu.GPU) error {
		sub, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		events, err := n.Events(sub)
		if err != nil {
			return err
		}
		if _, err := n.CreateGPUInstance(ctx, g.UUID, g.Model.Partitions()[0]); err != nil {
			return err
		}
		for e := range events {
			if e.Kind == hardware.EventMIGChange && e.GPU == g.UUID {
				return clearGPU(ctx, n, g)
			}
		}
		return errors.Join(errors.New("no event told of a new instance"), clearGPU(ctx, n, g))
	})
}
