// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/placement"
)

// Config is what the operator sets for a node.
type Config struct {
	// NodeName is the name of the Kubernetes node.
	NodeName string
	// DriverName is the DRA driver name; empty means [dra.DriverName].
	DriverName string
	MIG        dra.MIGPolicy
	Sharing    dra.Sharing
	// Tier is the value of the tier attribute; empty publishes none.
	Tier string
	// Mix is the expected mix of requests as people write it, see
	// [placement.ParseMixes]; empty means the default of each model.
	Mix string
	// Indices are the numbers that GPUs of this node have had so far.
	Indices map[gpu.UUID]int
}

// Discover reads a node's GPUs and joins them with the operator's settings. An
// automatic MIG policy becomes what each GPU's mode says now, so that a mode
// switched later does not change what is offered. Errors say which setting to
// change.
func Discover(ctx context.Context, hw hardware.Inventory, cfg Config) (dra.Node, error) {
	driver, err := hw.Driver(ctx)
	if err != nil {
		return dra.Node{}, fmt.Errorf("read the driver's version: %w", err)
	}
	gpus, err := hw.GPUs(ctx)
	if err != nil {
		return dra.Node{}, fmt.Errorf("list GPUs: %w", err)
	}
	indices, err := AssignIndices(gpus, cfg.Indices)
	if err != nil {
		return dra.Node{}, err
	}
	mixes, err := mixesFor(gpus, cfg.Mix)
	if err != nil {
		return dra.Node{}, err
	}
	n := dra.Node{Name: cfg.NodeName, Driver: cfg.DriverName, DriverVersion: driver.Version, CUDADriverVersion: driver.CUDA}
	for _, g := range gpus {
		n.GPUs = append(n.GPUs, dra.GPU{GPU: g, Index: indices[g.UUID], MIG: cfg.MIG.Resolve(g), Sharing: cfg.Sharing, Tier: cfg.Tier, Mix: mixes[g.Model]})
	}
	return n, nil
}

// mixesFor reads the mix for the models of a node that have MIG. A node without
// MIG leaves it aside: one setting can serve all nodes of a cluster.
func mixesFor(gpus []gpu.GPU, text string) (map[*gpu.Model]placement.Mix, error) {
	var withMIG []*gpu.Model
	for _, g := range gpus {
		if g.Model.HasMIG() && !slices.Contains(withMIG, g.Model) {
			withMIG = append(withMIG, g.Model)
		}
	}
	if text == "" || len(withMIG) == 0 {
		return nil, nil
	}
	return placement.ParseMixes(withMIG, text)
}

// AssignIndices numbers GPUs. A GPU that has a number keeps it for ever, also
// while it is missing; new ones get the smallest free numbers in the order of
// their PCI addresses. The number is part of the pool's name, and a pool that
// changed its name under running claims would hand its GPU out twice.
func AssignIndices(gpus []gpu.GPU, known map[gpu.UUID]int) (map[gpu.UUID]int, error) {
	out := maps.Clone(known)
	if out == nil {
		out = map[gpu.UUID]int{}
	}
	taken := map[int]gpu.UUID{}
	for id, n := range out {
		if other, ok := taken[n]; ok || n < 0 || n >= dra.MaxGPUs {
			return nil, fmt.Errorf("GPU %s cannot have the number %d: it must be its own and 0 to %d (other holder: %q)", id, n, dra.MaxGPUs-1, other)
		}
		taken[n] = id
	}
	byAddress := slices.Clone(gpus)
	slices.SortStableFunc(byAddress, func(a, b gpu.GPU) int {
		return cmp.Or(cmp.Compare(a.PCIBusID, b.PCIBusID), cmp.Compare(a.UUID, b.UUID))
	})
	next := 0
	for _, g := range byAddress {
		if _, ok := out[g.UUID]; ok {
			continue
		}
		for _, held := taken[next]; held; _, held = taken[next] {
			next++
		}
		if next >= dra.MaxGPUs {
			return nil, fmt.Errorf("GPU %s is one too many: a node can number %d GPUs, including ones seen before", g.UUID, dra.MaxGPUs)
		}
		out[g.UUID], taken[next] = next, g.UUID
	}
	return out, nil
}
