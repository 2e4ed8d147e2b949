// SPDX-License-Identifier: Apache-2.0

package dra

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"reslice.dev/internal/gpu"
)

// Capacities of a device. Names are bare: slice and claim must match as
// written, and a claim that writes gpu.reslice.dev/memory would not match.
const (
	CapMemory          = "memory"
	CapMultiprocessors = "multiprocessors"
	CapClients         = "clients"
)

// MinShareBytes is the smallest memory share: what a CUDA context needs.
const MinShareBytes = 256 << 20

type capacities map[resourceapi.QualifiedName]resourceapi.DeviceCapacity

// set publishes a plain number, unless it is 0 or unknown: the API server
// accepts a capacity of 0, but nobody can use it.
func (c capacities) set(name string, value int64, format resource.Format) {
	if value > 0 {
		c[resourceapi.QualifiedName(name)] = resourceapi.DeviceCapacity{Value: *resource.NewQuantity(value, format)}
	}
}

// setShared publishes a capacity from which shares draw.
func (c capacities) setShared(name string, value int64, format resource.Format, policy *resourceapi.CapacityRequestPolicy) {
	c.set(name, value, format)
	if d, ok := c[resourceapi.QualifiedName(name)]; ok {
		d.RequestPolicy = policy
		c[resourceapi.QualifiedName(name)] = d
	}
}

func engineCapacities(c capacities, e gpu.Engines) {
	for _, k := range gpu.EngineKinds {
		c.set(string(k), int64(e.Count(k)), resource.DecimalSI)
	}
}

// exclusiveCapacities are informational: on an exclusive device a request only
// filters, nothing is consumed.
func exclusiveCapacities(memory int64, sms int, e gpu.Engines) capacities {
	c := capacities{}
	c.set(CapMemory, memory, resource.BinarySI)
	c.set(CapMultiprocessors, int64(sms), resource.DecimalSI)
	engineCapacities(c, e)
	return c
}

// shareCapacities are all that a device has to share. Every one has a policy: a capacity
// without one is consumed whole by the first share. A claim that names no
// capacity gets all the memory, so nobody gets less than the whole device by
// writing nothing.
func shareCapacities(of gpu.Share) capacities {
	c := capacities{}
	memory := of.MemoryBytes
	c.setShared(CapMemory, memory, resource.BinarySI, &resourceapi.CapacityRequestPolicy{
		Default: quantity(memory, resource.BinarySI),
		// No step: (default - min) would have to be a multiple of it, and real
		// memory sizes are on no grid.
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity(min(memory, MinShareBytes), resource.BinarySI)},
	})
	c.setShared(CapMultiprocessors, int64(of.Multiprocessors), resource.DecimalSI, &resourceapi.CapacityRequestPolicy{
		Default: quantity(0, resource.DecimalSI), // no reservation
		ValidRange: &resourceapi.CapacityRequestPolicyRange{
			Min: quantity(0, resource.DecimalSI), Step: quantity(1, resource.DecimalSI),
		},
	})
	c.setShared(CapClients, int64(of.Clients), resource.DecimalSI, clientsPolicy(of.Clients))
	return c
}

func clientsPolicy(clients int) *resourceapi.CapacityRequestPolicy {
	p := &resourceapi.CapacityRequestPolicy{Default: quantity(1, resource.DecimalSI)}
	if clients < 2 {
		// A range must have room for one step above its minimum.
		p.ValidValues = []resource.Quantity{*quantity(1, resource.DecimalSI)}
		return p
	}
	p.ValidRange = &resourceapi.CapacityRequestPolicyRange{
		Min: quantity(1, resource.DecimalSI), Step: quantity(1, resource.DecimalSI),
	}
	return p
}

func quantity(v int64, f resource.Format) *resource.Quantity {
	return ptr.To(*resource.NewQuantity(v, f))
}
