// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"fmt"

	"reslice.dev/internal/gpu"
)

// MIGPolicy is what the operator wants a GPU to be used for.
type MIGPolicy string

// MIG policies. Auto is the default: On where MIG mode is on when the plugin
// starts, else Off.
const (
	MIGAuto    MIGPolicy = ""
	MIGOff     MIGPolicy = "off"
	MIGOn      MIGPolicy = "on"
	MIGDynamic MIGPolicy = "dynamic"
)

// Offer is which kinds of device a GPU publishes.
type Offer struct {
	// Whole: the GPU as one device, and its share twin where sharing allows.
	Whole bool
	// MIG: its partitions, and their share twins where sharing allows.
	MIG bool
	// Note says why the policy could not be followed; empty if it was.
	Note string
}

// String says what is offered, for people.
func (o Offer) String() string {
	switch {
	case o.Whole && o.MIG:
		return "whole and as MIG devices"
	case o.Whole:
		return "whole"
	case o.MIG:
		return "as MIG devices"
	}
	return "not at all"
}

// Resolve turns Auto into what the GPU's mode says now. Callers do it once, at
// start: a mode that somebody switches later must not change what is offered.
func (p MIGPolicy) Resolve(g gpu.GPU) MIGPolicy {
	switch {
	case p != MIGAuto:
		return p
	case g.MIGMode == gpu.MIGEnabled:
		return MIGOn
	}
	return MIGOff
}

// OfferOf decides what a GPU publishes. Boards without MIG and vGPU guests are
// offered whole. Ampere cannot switch MIG mode without a GPU reset, which
// Reslice never does by itself, so its current mode decides; later generations
// switch at prepare, so the policy decides. With MIG on, the largest profile
// serves as the whole: an A100 in MIG mode has 98 of its 108 SMs and must not
// be offered as the GPU.
func OfferOf(g gpu.GPU, policy MIGPolicy) Offer {
	switch {
	case g.MIGMode == gpu.MIGEnabled && !g.Model.HasMIG():
		// CUDA cannot use such a GPU as a whole.
		return Offer{Note: fmt.Sprintf("GPU %s (%s) is in MIG mode, but none of its profiles is known: only its monitor device is offered; switch MIG off to offer it whole",
			g.UUID, g.Model.ProductName)}
	case g.VGPUGuest || !g.Model.HasMIG() || g.MIGMode == gpu.MIGUnsupported:
		return offerWithoutMIG(g, policy)
	case g.Model.Architecture.ModeSwitchNeedsReset():
		return offerAsItIs(g, policy)
	}
	switch policy {
	case MIGOff:
		return Offer{Whole: true}
	case MIGOn:
		return Offer{MIG: true}
	case MIGDynamic:
		return Offer{Whole: true, MIG: true}
	case MIGAuto:
	}
	return offerOfMode(g)
}

// offerOfMode is what the current mode allows.
func offerOfMode(g gpu.GPU) Offer {
	on := g.MIGMode == gpu.MIGEnabled
	return Offer{Whole: !on, MIG: on}
}

func offerWithoutMIG(g gpu.GPU, policy MIGPolicy) Offer {
	o := Offer{Whole: true}
	if policy != MIGOn && policy != MIGDynamic {
		return o
	}
	why := "has no MIG"
	switch {
	case g.VGPUGuest:
		why = "is a vGPU guest, which cannot use MIG"
	case g.Model.MemorySlices > 0 && !g.Model.HasMIG():
		why = "has MIG profiles whose sizes are not known"
	}
	o.Note = fmt.Sprintf("GPU %s (%s) %s: it is offered whole", g.UUID, g.Model.ProductName, why)
	return o
}

func offerAsItIs(g gpu.GPU, policy MIGPolicy) Offer {
	o := offerOfMode(g)
	step := func(mode int) string {
		return fmt.Sprintf("; while nothing uses it, run nvidia-smi -i %s -mig %d and then nvidia-smi -i %s --gpu-reset", g.PCIBusID, mode, g.PCIBusID)
	}
	next := ""
	switch {
	case policy == MIGOn && !o.MIG:
		next = step(1)
	case policy == MIGOff && o.MIG:
		next = step(0)
	case policy != MIGDynamic:
		return o
	}
	o.Note = fmt.Sprintf("GPU %s (%s) needs a reset to switch MIG mode, which is left to you: it is offered as it is, MIG %s%s",
		g.UUID, g.Model.Architecture, g.MIGMode, next)
	return o
}

// Sharing says on which devices shares are offered.
type Sharing string

// Sharing modes. The empty value is the default and means SharingGPU, without a
// note where a GPU has nothing to share.
const (
	SharingNone Sharing = "none"
	SharingGPU  Sharing = "gpu"
	SharingMIG  Sharing = "mig"
	SharingAll  Sharing = "all"
)

// The empty value is the default, as an empty MIGPolicy is.
func (s Sharing) onGPU() bool { return s == "" || s == SharingGPU || s == SharingAll }
func (s Sharing) onMIG() bool { return s == SharingMIG || s == SharingAll }

// ParseMIGPolicy reads the value of a flag or setting.
func ParseMIGPolicy(s string) (MIGPolicy, error) {
	switch p := MIGPolicy(s); p {
	case MIGAuto, MIGOff, MIGOn, MIGDynamic:
		return p, nil
	}
	return "", fmt.Errorf("unknown MIG policy %q: write on, off or dynamic, or leave it out to keep each GPU's mode", s)
}

// ParseSharing reads the value of a flag or setting; empty is the default.
func ParseSharing(s string) (Sharing, error) {
	switch v := Sharing(s); v {
	case "", SharingNone, SharingGPU, SharingMIG, SharingAll:
		return v, nil
	}
	return "", fmt.Errorf("unknown sharing %q: write none, gpu, mig or all", s)
}
