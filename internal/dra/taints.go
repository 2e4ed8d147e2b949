// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"reslice.dev/internal/gpu"
)

// Held names a device that a claim holds, by what it is.
type Held struct {
	Kind Kind
	// Partition is set for KindMIG.
	Partition gpu.Partition
	Shared    bool
}

// Taint keeps new claims off devices of a GPU.
type Taint struct {
	// Reason becomes the key, behind "gpu.reslice.dev/"; one taint for each
	// reason, so that a harmless one never replaces a serious one.
	Reason string
	Value  string
	Effect resourceapi.DeviceTaintEffect
	// On limits the taint to devices that overlap this placement; nil means
	// every device of the GPU but the monitor.
	On *gpu.Placement
}

// ReasonWithdrawn is the taint of a device that is published only because a
// claim still holds it.
const ReasonWithdrawn = "withdrawn"

// taintDomain is part of an agreement with people and policies, so it does not
// follow the driver's name.
const taintDomain = "gpu.reslice.dev/"

// maxTaints is the API's limit for a device.
const maxTaints = 16

func (t Taint) device() resourceapi.DeviceTaint {
	return resourceapi.DeviceTaint{Key: taintDomain + t.Reason, Value: t.Value, Effect: t.Effect}
}

// effectRank orders effects, the weightiest first.
func effectRank(e resourceapi.DeviceTaintEffect) int {
	return slices.Index([]resourceapi.DeviceTaintEffect{
		resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNone,
	}, e)
}

// taintsOf lists what applies to a device, the weightiest effect first. More
// than the API takes would lose the slice, so the lightest are left out.
func (b *builder) taintsOf(d Device) []resourceapi.DeviceTaint {
	if d.Kind == KindMonitor {
		return nil
	}
	var out []resourceapi.DeviceTaint
	for _, t := range b.gpu.Taints {
		whole := d.Kind == KindGPU || t.On == nil
		if whole || t.On.Overlaps(d.Partition.Placement) {
			out = append(out, t.device())
		}
	}
	if b.withdrawn[d.Name] {
		out = append(out, Taint{Reason: ReasonWithdrawn, Effect: resourceapi.DeviceTaintEffectNoSchedule}.device())
	}
	slices.SortStableFunc(out, func(x, y resourceapi.DeviceTaint) int {
		return cmp.Or(cmp.Compare(effectRank(x.Effect), effectRank(y.Effect)), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Value, y.Value))
	})
	return out[:min(len(out), maxTaints)]
}

// keep publishes devices that claims hold and that the settings no longer
// offer. Dropping one would give its counters back, and the silicon would be
// given out a second time; the taint keeps new claims off it.
func (b *builder) keep() {
	kept := slices.Clone(b.gpu.Held)
	slices.SortFunc(kept, func(x, y Held) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), gpu.ComparePartitions(x.Partition, y.Partition), compareBool(x.Shared, y.Shared))
	})
	for _, h := range kept {
		name := b.nameOf(h)
		if _, published := b.meaning[name]; published {
			continue
		}
		b.withdrawn[name] = true
		switch {
		case h.Kind == KindMonitor: // published by build
		case h.Kind == KindGPU:
			b.addGPU(h.Shared)
		case slices.Contains(b.gpu.Model.Partitions(), h.Partition):
			b.addMIG(h.Partition, h.Shared)
		default:
			b.addUnknown(name, h)
		}
	}
}

// addUnknown publishes a partition that a claim holds and that the driver, as
// it is now, does not list. Nobody knows what it takes besides its memory
// slices, so it takes every other counter whole: the rest of the GPU stays
// closed until the claim ends.
func (b *builder) addUnknown(name string, h Held) {
	taken := b.counters.all()
	for i := range b.gpu.Model.MemorySlices {
		if i < h.Partition.Placement.Start || i >= h.Partition.Placement.End() {
			delete(taken, counterMemory(i))
		}
	}
	b.notes = append(b.notes, fmt.Sprintf("a claim holds %s, a partition that the driver does not list: nothing else of this GPU can be given out until the claim ends", name))
	sharing := SharedExclusive
	if h.Shared {
		sharing = shareStrategy(b.gpu.Model)
	}
	b.add(Device{Name: name, Kind: KindMIG, Partition: h.Partition, Shared: h.Shared}, resourceapi.Device{
		Attributes:       migAttributes(b.node, b.gpu, gpu.Profile{}, h.Partition.Placement, sharing),
		ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: b.counters.set, Counters: taken}},
	})
}

// validateTaints refuses what would lose the slice at the API server.
func validateTaints(taints []Taint) error {
	var errs []error
	for _, t := range taints {
		msgs := append(validation.IsQualifiedName(taintDomain+t.Reason), validation.IsValidLabelValue(t.Value)...)
		if len(msgs) > 0 || effectRank(t.Effect) < 0 {
			errs = append(errs, fmt.Errorf("taint %q with value %q and effect %q: reason and value must be written as labels, the effect NoExecute, NoSchedule or None",
				t.Reason, t.Value, t.Effect))
		}
	}
	return errors.Join(errs...)
}

func (b *builder) nameOf(h Held) string {
	name := gpuName(b.gpu.Index)
	switch h.Kind {
	case KindMIG:
		name = deviceName(b.gpu.Index, h.Partition)
	case KindMonitor:
		return monitorName(b.gpu.Index)
	case KindGPU:
	}
	if h.Shared {
		name += sharedSuffix
	}
	return name
}

func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}
