// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
)

const (
	benchNode = "node-a"
	benchGPUs = 8
)

// layout is one way to publish the same node.
type layout struct {
	name    string
	slices  []*resourceapi.ResourceSlice
	classes []*resourceapi.DeviceClass
	// shares: every allocation of MIG devices is a share (unified), or can be
	// one (twins).
	unified, twins bool
}

// Names of the layouts. The first is the baseline.
const (
	layoutNVIDIA     = "NVIDIA: exclusive, pool per node"
	layoutNode       = "exclusive, pool per node"
	layoutNone       = "Reslice, sharing none"
	layoutGPU        = "Reslice, sharing gpu (default)"
	layoutAll        = "Reslice, sharing all (twins)"
	layoutTwinsNode  = "twins, pool per node"
	layoutUnifiedGPU = "unified, pool per GPU"
	layoutUnified    = "unified, pool per node"
)

// layouts publishes one node of eight GPUs in every way.
func layouts(m *gpu.Model) ([]layout, error) {
	pools := map[dra.Sharing][]dra.Pool{}
	for _, s := range []dra.Sharing{dra.SharingNone, dra.SharingGPU, dra.SharingAll} {
		p, err := dra.Pools(nodeOf(m, benchGPUs, s, nil))
		if err != nil {
			return nil, err
		}
		pools[s] = p
	}
	ascending, err := dra.Pools(nodeOf(m, benchGPUs, dra.SharingNone, m.Partitions()))
	if err != nil {
		return nil, err
	}
	render := func(p []dra.Pool) []*resourceapi.ResourceSlice {
		return dra.ResourceSlices(dra.Node{Name: benchNode}, p)
	}
	ours := dra.DeviceClasses("")
	unified := unifiedPools(pools[dra.SharingAll])
	return []layout{
		{name: layoutNVIDIA, slices: render(merged(engineCounters(ascending, m))), classes: ours},
		{name: layoutNode, slices: render(merged(pools[dra.SharingNone])), classes: ours},
		{name: layoutNone, slices: render(pools[dra.SharingNone]), classes: ours},
		{name: layoutGPU, slices: render(pools[dra.SharingGPU]), classes: ours},
		{name: layoutAll, slices: render(pools[dra.SharingAll]), classes: ours, twins: true},
		{name: layoutTwinsNode, slices: render(merged(pools[dra.SharingAll])), classes: ours, twins: true},
		{name: layoutUnifiedGPU, slices: render(unified), classes: unifiedClasses(), unified: true},
		{name: layoutUnified, slices: render(merged(unified)), classes: unifiedClasses(), unified: true},
	}, nil
}

// nodeOf is a node that offers its GPUs whole and as MIG devices. A nil order
// is Reslice's own.
func nodeOf(m *gpu.Model, gpus int, s dra.Sharing, order []gpu.Partition) dra.Node {
	n := dra.Node{Name: benchNode, DriverVersion: "580.65.06", CUDADriverVersion: 13010}
	for i := range gpus {
		n.GPUs = append(n.GPUs, dra.GPU{
			GPU: gpu.GPU{
				UUID: gpu.UUID(fmt.Sprintf("GPU-%08d", i)), Minor: i, Model: m, MIGMode: gpu.MIGEnabled, Brand: "Nvidia",
				PCIBusID: fmt.Sprintf("0000:%02x:00.0", 0x10+i), PCIeRoot: fmt.Sprintf("pci0000:%02x", 0x10+i), NUMANode: i / 4,
			},
			Index: i, MIG: dra.MIGDynamic, Sharing: s, Order: order,
		})
	}
	return n
}

// merged is one pool for the node: all counter sets in one slice, exclusive
// devices GPU by GPU, then the share twins.
func merged(pools []dra.Pool) []dra.Pool {
	out := dra.Pool{Name: benchNode, Slices: []dra.Slice{{}}}
	var exclusive, shared []resourceapi.Device
	for _, p := range pools {
		for _, s := range p.Slices {
			out.Slices[0].SharedCounters = append(out.Slices[0].SharedCounters, s.SharedCounters...)
			for _, d := range s.Devices {
				if d.AllowMultipleAllocations != nil {
					shared = append(shared, d)
				} else {
					exclusive = append(exclusive, d)
				}
			}
		}
	}
	for chunk := range slices.Chunk(append(exclusive, shared...), dra.MaxDevicesPerSlice) {
		out.Slices = append(out.Slices, dra.Slice{Devices: chunk})
	}
	return []dra.Pool{out}
}

// engineCounters counts what NVIDIA's driver counts: memory slices, and every
// kind of engine and the multiprocessors, whether they constrain something or
// not. It publishes no device for monitoring.
func engineCounters(pools []dra.Pool, m *gpu.Model) []dra.Pool {
	whole, _ := m.Whole()
	var out []dra.Pool
	for _, p := range pools {
		set := p.Slices[0].SharedCounters[0].Name
		q := dra.Pool{Name: p.Name, Devices: p.Devices, Slices: []dra.Slice{{
			SharedCounters: []resourceapi.CounterSet{{Name: set, Counters: counted(whole, 0)}},
		}}}
		var devices []resourceapi.Device
		for _, s := range p.Slices[1:] {
			for _, d := range s.Devices {
				meaning := p.Devices[d.Name]
				prof, start := whole, 0
				switch meaning.Kind {
				case dra.KindMonitor:
					continue
				case dra.KindMIG:
					prof, _ = m.Profile(meaning.Partition.Profile)
					start = meaning.Partition.Placement.Start
				case dra.KindGPU:
				}
				d.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: counted(prof, start)}}
				devices = append(devices, d)
			}
		}
		q.Slices = append(q.Slices, dra.Slice{Devices: devices})
		out = append(out, q)
	}
	return out
}

func counted(p gpu.Profile, start int) map[string]resourceapi.Counter {
	out := map[string]resourceapi.Counter{}
	set := func(name string, n int) {
		if n > 0 {
			out[name] = resourceapi.Counter{Value: *resource.NewQuantity(int64(n), resource.DecimalSI)}
		}
	}
	for i := range p.MemorySlices {
		set(fmt.Sprintf("memory-slice-%d", start+i), 1)
	}
	set("multiprocessors", p.Multiprocessors)
	for _, k := range gpu.EngineKinds {
		set(string(k), p.Engines.Count(k))
	}
	return out
}

// unifiedPools publishes one device for both uses: the twins alone, and what
// has no twin.
func unifiedPools(pools []dra.Pool) []dra.Pool {
	var out []dra.Pool
	for _, p := range pools {
		q := dra.Pool{Name: p.Name, Devices: p.Devices, Slices: slices.Clone(p.Slices[:1])}
		var devices []resourceapi.Device
		for _, s := range p.Slices[1:] {
			for _, d := range s.Devices {
				if _, twin := p.Devices[d.Name+"-shared"]; !twin {
					devices = append(devices, d)
				}
			}
		}
		for chunk := range slices.Chunk(devices, dra.MaxDevicesPerSlice) {
			q.Slices = append(q.Slices, dra.Slice{Devices: chunk})
		}
		out = append(out, q)
	}
	return out
}

// unifiedClasses select by kind alone: a unified device is never exclusive.
func unifiedClasses() []*resourceapi.DeviceClass {
	out := dra.DeviceClasses("")
	for _, c := range out {
		if c.Name == dra.ClassMIG {
			c.Spec.Selectors[0].CEL.Expression = fmt.Sprintf("device.driver == %q && device.attributes[%q].type == %q",
				dra.DriverName, dra.DriverName, dra.TypeMIG)
		}
	}
	return out
}
