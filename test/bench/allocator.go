// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"reslice.dev/internal/cluster"
	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
)

// elsewhere is how many devices or shares other nodes have given out.
const elsewhere = 10_000

// clusterNodes is how many nodes publish slices in the row that shows what a
// pod's first filter costs.
const clusterNodes = 500

// situation is one row of the allocator table.
type situation struct {
	name string
	// full is how many of the GPUs, from the first, have no room.
	full int
	// shares is the part of the allocations that are shares, in percent.
	shares int
	nodes  int
}

func situations() []situation {
	var out []situation
	for _, shares := range []int{0, 10, 100} {
		out = append(out,
			situation{"fits, node empty", 0, shares, 1},
			situation{"fits, 7 of 8 GPUs full", benchGPUs - 1, shares, 1},
			situation{"fits nowhere", benchGPUs, shares, 1})
	}
	return append(out, situation{fmt.Sprintf("fits, node empty, slices of %d nodes", clusterNodes), 0, 0, clusterNodes})
}

// allocatorResult is one row: the median time under each layout.
type allocatorResult struct {
	situation
	micros []float64 // by layout
}

// allocatorTimes asks for one smallest MIG device, exclusively. A fresh
// allocator is built for each question and counts: the scheduler builds one
// for each pod. Layouts take turns, in a random order each time, so that noise
// and garbage collection hit all.
func allocatorTimes(ctx context.Context, o options) ([]string, []allocatorResult, error) {
	m, err := models.ByID("h100-80gb")
	if err != nil {
		return nil, nil, err
	}
	all, err := layouts(m)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, l := range all {
		names = append(names, l.name)
	}
	var out []allocatorResult
	for _, s := range situations() {
		r, err := s.measure(ctx, m, all, o.repetitions)
		if err != nil {
			return nil, nil, fmt.Errorf("%s, %d %% shares: %w", s.name, s.shares, err)
		}
		out = append(out, r)
		o.progress("allocator: %s, %d %% shares", s.name, s.shares)
	}
	return names, out, nil
}

func (s situation) measure(ctx context.Context, m *gpu.Model, all []layout, repetitions int) (allocatorResult, error) {
	smallest := m.Profiles[0]
	var worlds []*cluster.WhatIf
	for _, l := range all {
		worlds = append(worlds, s.world(l, m))
	}
	node, claim := cluster.NodeNamed(benchNode), claimFor(smallest.Name)
	times := make([][]float64, len(all))
	shuffle := rand.New(rand.NewPCG(1, 1))
	for rep := range repetitions + 1 {
		for _, i := range shuffle.Perm(len(worlds)) {
			w := worlds[i]
			w.Commit() // forgets the allocator
			start := time.Now()
			got, err := w.Allocate(ctx, node, claim)
			took := time.Since(start)
			if err != nil {
				return allocatorResult{}, err
			}
			if (got != nil) != (s.full < benchGPUs) {
				return allocatorResult{}, fmt.Errorf("%s: fits: %v", all[i].name, got != nil)
			}
			if rep > 0 { // the first one compiles the selectors
				times[i] = append(times[i], float64(took.Nanoseconds())/1e3)
			}
		}
	}
	r := allocatorResult{situation: s}
	for _, t := range times {
		r.micros = append(r.micros, median(t))
	}
	return r, nil
}

// poolOn is the pool of a GPU on a node: its own, or the node's.
func (l layout) poolOn(node string, g int) string {
	if l.slices[0].Spec.Pool.Name == benchNode {
		return node
	}
	return dra.PoolName(node, g)
}

// world is the state of the cluster: full GPUs on the node, and allocations
// elsewhere.
func (s situation) world(l layout, m *gpu.Model) *cluster.WhatIf {
	smallest := m.Profiles[0]
	published := l.slices
	for i := 1; i < s.nodes; i++ {
		for _, slice := range l.slices {
			other := *slice
			other.Spec.NodeName = ptr.To(otherNode(i))
			other.Spec.Pool.Name = strings.Replace(slice.Spec.Pool.Name, benchNode, otherNode(i), 1)
			other.Name = strings.Replace(slice.Name, benchNode, otherNode(i), 1)
			published = append(slices.Clip(published), &other)
		}
	}
	w := cluster.NewWhatIf(cluster.StockFeatures, published, l.classes)
	// Unified devices know shares only.
	for i := range elsewhere {
		shared := l.unified || i%100 < s.shares
		// Four shares to a device; exclusive devices have one holder.
		n := i
		if shared {
			n = i / 4
		}
		pool, device := l.poolOn(otherNode(n/56), n/7%8), deviceName(n/7%8, smallest, n%7, shared)
		w.Commit(allocation(pool, device, shared, i))
	}
	onNode := l.unified || (l.twins && s.shares == 100)
	for g := range s.full {
		pool := l.poolOn(benchNode, g)
		// Two large devices fill a GPU, so that each small one is still
		// compared with the counters.
		for k, p := range s.filling(m) {
			w.Commit(allocation(pool, deviceName(g, p, k*4, onNode), onNode, elsewhere+g*2+k))
		}
	}
	return w
}

// filling is 4g at memory slice 0 and 3g at 4: a full GPU.
func (situation) filling(m *gpu.Model) []gpu.Profile {
	var out []gpu.Profile
	for _, compute := range []int{4, 3} {
		i := slices.IndexFunc(m.Profiles, func(p gpu.Profile) bool { return p.ComputeSlices == compute })
		out = append(out, m.Profiles[i])
	}
	return out
}

func otherNode(i int) string { return fmt.Sprintf("other-%04d", i) }

func deviceName(g int, p gpu.Profile, start int, shared bool) string {
	name := fmt.Sprintf("gpu-%02d-mig-%d-%d", g, p.ID, start)
	if shared {
		name += "-shared"
	}
	return name
}

func allocation(pool, device string, shared bool, serial int) resourceapi.AllocationResult {
	r := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: dra.DriverName, Pool: pool, Device: device}
	if shared {
		r.ShareID = ptr.To(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", serial)))
		r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{
			dra.CapMemory:          *resource.NewQuantity(1<<30, resource.BinarySI),
			dra.CapMultiprocessors: *resource.NewQuantity(0, resource.DecimalSI),
			dra.CapClients:         *resource.NewQuantity(1, resource.DecimalSI),
		}
	}
	return resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{r},
	}}
}

// claimFor asks for one MIG device of a profile.
func claimFor(profile string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default", UID: "claim"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{
			Name: "r",
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: dra.ClassMIG, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
				Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
					Expression: fmt.Sprintf("device.attributes[%q].profile == %q", dra.DriverName, profile),
				}}},
			},
		}}}},
	}
}
