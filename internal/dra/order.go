// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"fmt"
	"slices"
	"sync"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/placement"
)

// orders remembers what [placement.Order] found. The search takes some tens of
// milliseconds, a node asks for each of its GPUs at each publication, and the
// answer depends on nothing but the key.
var orders = struct {
	sync.Mutex
	known map[string][]gpu.Partition
}{known: map[string][]gpu.Partition{}}

// maxOrders bounds the memory of a process that is handed ever new mixes.
const maxOrders = 256

// partitionOrder is the order in which a GPU's partitions are published.
func partitionOrder(g GPU) ([]gpu.Partition, error) {
	if g.Order == nil {
		mix := g.Mix
		if mix == nil {
			mix = placement.DefaultMix(g.Model)
		}
		return rememberedOrder(g.Model, mix), nil
	}
	want, got := g.Model.Partitions(), slices.Clone(g.Order)
	slices.SortFunc(want, gpu.ComparePartitions)
	slices.SortFunc(got, gpu.ComparePartitions)
	if !slices.Equal(want, got) {
		return nil, fmt.Errorf("the order given lists %d partitions, the model %s has %d: list each exactly once", len(got), g.Model.ID, len(want))
	}
	return g.Order, nil
}

func rememberedOrder(m *gpu.Model, mix placement.Mix) []gpu.Partition {
	key := fmt.Sprintf("%d %d %+v %v", m.MemorySlices, m.ComputeSlices, m.Profiles, mix)
	orders.Lock()
	defer orders.Unlock()
	if o, ok := orders.known[key]; ok {
		return o
	}
	if len(orders.known) >= maxOrders {
		clear(orders.known)
	}
	o := placement.Order(m, mix)
	orders.known[key] = o
	return o
}
