// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"reslice.dev/internal/gpu"
)

// counterCompute counts compute slices, the unit of quotas.
const counterCompute = "compute-slices"

func counterMemory(i int) string { return fmt.Sprintf("memory-slice-%d", i) }

func counterEngine(k gpu.EngineKind) string {
	switch k {
	case gpu.EngineCopy:
		return "copy-engines"
	case gpu.EngineJPEG:
		return "jpeg-engines"
	case gpu.EngineOFA:
		return "ofa-engines"
	case gpu.EngineDecoder, gpu.EngineEncoder:
		return strings.ToLower(string(k))
	}
	return strings.ToLower(string(k))
}

// constraint is one counter beyond the memory slices: how much of it the GPU
// has and how much a partition of a profile takes.
type constraint struct {
	name  string
	limit int
	takes func(gpu.Profile) int
}

// counters is the counter set of one GPU and what each kind of device takes of
// it. Counters are compared for every device that the scheduler looks at, so
// there are only as many as constrain something: one per memory slice, the
// compute slices, and others only where partitions that every counter so far
// allows could still take too much.
type counters struct {
	model       *gpu.Model
	set         string
	constraints []constraint
}

// newCounters does not depend on the MIG mode: devices that are held from
// before a change of mode must find their counters.
func newCounters(index int, m *gpu.Model) counters {
	c := counters{model: m, set: gpuName(index)}
	if m.HasMIG() {
		c.constraints = constraints(m)
	}
	return c
}

// constraints picks the counters of a model. Engines are tried scarcest first:
// on Hopper the one optical-flow engine is all it takes to keep "+me" single.
// A profile's maximum gets a counter of its own only where nothing else
// implies it.
func constraints(m *gpu.Model) []constraint {
	out := []constraint{{counterCompute, m.ComputeSlices, func(p gpu.Profile) int { return p.ComputeSlices }}}
	add := func(c constraint) {
		if largestSum(m, out, c.takes) > c.limit {
			out = append(out, c)
		}
	}
	kinds := slices.Clone(gpu.EngineKinds)
	slices.Reverse(kinds)
	for _, k := range kinds {
		if limit := m.EngineLimit(k); limit != gpu.Unknown {
			add(constraint{counterEngine(k), limit, func(p gpu.Profile) int { return p.Engines.Count(k) }})
		}
	}
	for _, q := range m.Profiles {
		add(constraint{fmt.Sprintf("profile-%d-instances", q.ID), q.MaxInstances, func(p gpu.Profile) int {
			if p.ID == q.ID {
				return 1
			}
			return 0
		}})
	}
	return out
}

// largestSum is the most of something that partitions without overlap can take
// together within the constraints: the best way to fill the slots from left to
// right, kept for each amount of the constraints used so far.
func largestSum(m *gpu.Model, within []constraint, takes func(gpu.Profile) int) int {
	type used [8]int // at most compute, 5 engines and a few profiles
	within = within[:min(len(within), len(used{}))]
	best := make([]map[used]int, m.MemorySlices+1)
	best[0] = map[used]int{{}: 0}
	most := 0
	for slot := range m.MemorySlices {
		for u, sum := range best[slot] {
			keep(&best[slot+1], u, sum)
			for _, p := range m.Profiles {
				next, ok := u, slices.Contains(p.Placements, gpu.Placement{Start: slot, Size: p.MemorySlices})
				for i, c := range within {
					next[i] += c.takes(p)
					ok = ok && next[i] <= c.limit
				}
				if ok {
					keep(&best[slot+p.MemorySlices], next, sum+takes(p))
				}
			}
		}
	}
	for _, sum := range best[m.MemorySlices] {
		most = max(most, sum)
	}
	return most
}

func keep[K comparable](m *map[K]int, k K, sum int) {
	if *m == nil {
		*m = map[K]int{}
	}
	if old, ok := (*m)[k]; !ok || sum > old {
		(*m)[k] = sum
	}
}

func (c counters) counterSet() resourceapi.CounterSet {
	return resourceapi.CounterSet{Name: c.set, Counters: c.all()}
}

// all is every counter at its full value: what the GPU holds, and what a
// device that is the whole GPU takes.
func (c counters) all() map[string]resourceapi.Counter {
	if !c.model.HasMIG() {
		// One counter makes the GPU and its share twin exclude each other.
		return map[string]resourceapi.Counter{"gpu": counter(1)}
	}
	out := map[string]resourceapi.Counter{}
	for i := range c.model.MemorySlices {
		out[counterMemory(i)] = counter(1)
	}
	for _, k := range c.constraints {
		out[k.name] = counter(k.limit)
	}
	return out
}

func (c counters) consumedByGPU() []resourceapi.DeviceCounterConsumption {
	return []resourceapi.DeviceCounterConsumption{{CounterSet: c.set, Counters: c.all()}}
}

func (c counters) consumedBy(p gpu.Profile, pl gpu.Placement) []resourceapi.DeviceCounterConsumption {
	out := map[string]resourceapi.Counter{}
	for i := pl.Start; i < pl.End(); i++ {
		out[counterMemory(i)] = counter(1)
	}
	for _, k := range c.constraints {
		if n := k.takes(p); n > 0 {
			out[k.name] = counter(n)
		}
	}
	return []resourceapi.DeviceCounterConsumption{{CounterSet: c.set, Counters: out}}
}

func counter(n int) resourceapi.Counter {
	return resourceapi.Counter{Value: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}
