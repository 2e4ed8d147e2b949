// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// The methods of this file and of world_instances.go are not the driver's. They
// are what else can happen to a machine, for tests, scenarios and the local
// cluster: no latency, no faults, no permissions, but never an illegal state.

// operate changes one GPU from outside and checks the result.
func (n *Node) operate(what string, id gpu.UUID, fn func(*State, *GPUState) error) error {
	err := n.store.update(func(s *State) error {
		g := s.gpu(id)
		if g == nil {
			return hardware.ErrNotFound
		}
		if err := fn(s, g); err != nil {
			return err
		}
		return s.checkGPU(g)
	})
	n.wake()
	if err != nil {
		return fmt.Errorf("%s on %s: %w", what, id, err)
	}
	return nil
}

// Reboot restarts the machine: instances, processes, clients, limits and modes
// are gone, lost GPUs are back, pending changes are in effect, and the boot id
// is another. Ampere keeps its MIG mode, later boards lose it.
func (n *Node) Reboot() error {
	err := n.store.update(func(s *State) error {
		s.Boots++
		for i := range s.GPUs {
			g := &s.GPUs[i]
			s.reset(g)
			g.Lost, g.Minor = false, i
			if g.MIGMode != gpu.MIGUnsupported && !s.model(g).Architecture.ModeSwitchNeedsReset() {
				g.MIGMode, g.PendingMIGMode = gpu.MIGDisabled, gpu.MIGDisabled
			}
		}
		s.Events = nil
		return nil
	})
	n.wake()
	return err
}

// ResetGPU resets one GPU, as nvidia-smi -r does. It is refused while anything
// holds the GPU. Instances are lost, a pending MIG mode takes effect.
func (n *Node) ResetGPU(id gpu.UUID) error {
	return n.operate("reset GPU", id, func(s *State, g *GPUState) error {
		if g.held() {
			return hardware.ErrBusy
		}
		s.reset(g)
		return nil
	})
}

// reset empties the GPU and repairs what a reset repairs: rows waiting to be
// remapped, and every fault but a GPU without spare rows.
func (s *State) reset(g *GPUState) {
	g.Instances, g.Processes, g.Clients, g.Load, g.Limits = nil, nil, nil, nil, nil
	g.MIGMode = g.PendingMIGMode
	g.ComputeMode, g.TimeSlice = hardware.ComputeModeDefault, hardware.TimeSliceDefault
	g.Health.RowsPending = false
	g.Health.CorrectedECC, g.Health.UncorrectedECC = 0, 0
	g.Health.Throttle = nil
	g.Health.Recovery = hardware.RecoveryNone
}

// LoseGPU makes the GPU fall off the bus, with the event that announces it
// (XID 79). Only a reboot brings it back.
func (n *Node) LoseGPU(id gpu.UUID) error {
	return n.operate("lose GPU", id, func(s *State, g *GPUState) error {
		g.Lost = true
		g.Health.Recovery = hardware.RecoveryNodeReboot
		s.record(EventState{Kind: hardware.EventXID, GPU: id, XID: 79, GI: hardware.NoInstance, CI: hardware.NoInstance})
		return nil
	})
}

// HideGPU leaves the GPU out of the inventory with this reason; an empty
// reason shows it again.
func (n *Node) HideGPU(id gpu.UUID, reason string) error {
	return n.operate("hide GPU", id, func(_ *State, g *GPUState) error {
		g.Hidden = reason
		return nil
	})
}

// SetVGPUGuest makes the GPU a vGPU guest, which has no MIG, or back.
func (n *Node) SetVGPUGuest(id gpu.UUID, guest bool) error {
	return n.operate("make vGPU guest", id, func(s *State, g *GPUState) error {
		if len(g.Instances) > 0 || g.held() {
			return hardware.ErrBusy
		}
		g.VGPUGuest, g.MIGMode = guest, gpu.MIGUnsupported
		if !guest && s.model(g).HasMIG() {
			g.MIGMode = gpu.MIGDisabled
		}
		g.PendingMIGMode = g.MIGMode
		return nil
	})
}

// SetMinorRenumbering decides whether a switch of MIG mode gives the GPU
// another minor.
func (n *Node) SetMinorRenumbering(id gpu.UUID, on bool) error {
	return n.operate("set renumbering", id, func(_ *State, g *GPUState) error {
		g.Renumbers = on
		return nil
	})
}

// SetMirrored mirrors the map from placement to GPU instance id. The GPU must
// be without instances.
func (n *Node) SetMirrored(id gpu.UUID, mirrored bool) error {
	return n.operate("mirror ids", id, func(_ *State, g *GPUState) error {
		if len(g.Instances) > 0 {
			return hardware.ErrBusy
		}
		g.Mirrored = mirrored
		return nil
	})
}

// SetDriver installs another driver: version, CUDA version and renamed profile
// labels (board table's name to printed name). Nothing else changes.
func (n *Node) SetDriver(d DriverState) error {
	err := n.store.update(func(s *State) error {
		s.Driver = d
		s.models = nil
		return s.resolve()
	})
	if err != nil {
		return fmt.Errorf("set driver: %w", err)
	}
	return nil
}

// SetHealth replaces the health values of a GPU, without an event.
func (n *Node) SetHealth(id gpu.UUID, h HealthState) error {
	return n.operate("set health", id, func(_ *State, g *GPUState) error {
		g.Health = h
		g.Health.Throttle = slices.Clone(h.Throttle)
		return nil
	})
}

// InjectEvent records a hardware event. Its time is when a reader gets it.
func (n *Node) InjectEvent(e hardware.Event) error {
	return n.operate("inject event", e.GPU, func(s *State, _ *GPUState) error {
		s.record(EventState{Kind: e.Kind, GPU: e.GPU, XID: e.XID, GI: e.GI, CI: e.CI})
		return nil
	})
}
