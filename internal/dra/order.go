// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"fmt"
	"slices"
	"sync"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/placement"
)

// orders remembers what [placement.Order] found. The search takes some tenths
// of a second, a node asks for each of its GPUs at each publication, and the
// answer depends on nothing but the key.
var orders = struct {
	sync.Mutex
	known map[string]func() []gpu.Partition
}{known: map[string]func() []gpu.Partition{}}

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
		return nil, fmt.Errorf("the order given is not one of the %d partitions of %s, each listed exactly once", len(want), g.Model.ID)
	}
	return g.Order, nil
}

// rememberedOrder searches each order once; GPUs that need another do not wait.
func rememberedOrder(m *gpu.Model, mix placement.Mix) []gpu.Partition {
	key := fmt.Sprintf("%d %d %+v %v", m.MemorySlices, m.ComputeSlices, m.Profiles, mix.Normalized())
	orders.Lock()
	find, ok := orders.known[key]
	if !ok {
		if len(orders.known) >= maxOrders {
			clear(orders.known)
		}
		find = sync.OnceValue(func() []gpu.Partition { return placement.Order(m, mix) })
		orders.known[key] = find
	}
	orders.Unlock()
	return find()
}
