// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// MIGMode implements [hardware.MIG].
func (n *Node) MIGMode(ctx context.Context, id gpu.UUID) (hardware.MIGModeState, error) {
	var mode hardware.MIGModeState
	err := n.read(ctx, on(hardware.MethodMIGMode, id), func(_ *State, g *GPUState) error {
		mode = hardware.MIGModeState{Current: g.MIGMode, Pending: g.PendingMIGMode}
		return nil
	})
	return mode, err
}

// SetMIGMode implements [hardware.MIG]. Instances keep the mode from going
// off; any client keeps it from changing. Ampere then waits for a reset, later
// boards switch at once.
func (n *Node) SetMIGMode(ctx context.Context, id gpu.UUID, enable bool) (hardware.Activation, error) {
	var done hardware.Activation
	err := n.change(ctx, on(hardware.MethodSetMIGMode, id), func(s *State, g *GPUState) error {
		if g.MIGMode == gpu.MIGUnsupported {
			return refuse(hardware.ErrUnsupported, "%s", noMIG(g))
		}
		done = s.setMIGMode(g, enable)
		return nil
	})
	return done, err
}

func noMIG(g *GPUState) string {
	if g.VGPUGuest {
		return "a vGPU guest has no MIG"
	}
	return g.Model + " has no MIG"
}

func (s *State) setMIGMode(g *GPUState, enable bool) hardware.Activation {
	want := gpu.MIGDisabled
	if enable {
		want = gpu.MIGEnabled
	}
	switch {
	case g.MIGMode == want:
		g.PendingMIGMode = want // takes back a change that waits for a reset
		return hardware.ActivationDone
	case len(g.Instances) > 0 || g.held():
		return hardware.ActivationInUse
	case s.model(g).Architecture.ModeSwitchNeedsReset():
		g.PendingMIGMode = want
		return hardware.ActivationResetRequired
	}
	g.MIGMode, g.PendingMIGMode = want, want
	// Limits of a whole GPU mean nothing under the other mode.
	g.Limits, g.Load = nil, nil
	if g.Renumbers {
		g.Minor = s.freeMinor()
	}
	s.record(EventState{Kind: hardware.EventMIGChange, GPU: g.UUID, GI: hardware.NoInstance, CI: hardware.NoInstance})
	return hardware.ActivationDone
}

// held reports whether any client has the GPU or an instance open.
func (g *GPUState) held() bool {
	return len(g.Processes) > 0 || len(g.Clients) > 0 ||
		slices.ContainsFunc(g.Instances, func(in InstanceState) bool { return len(in.Clients) > 0 })
}
