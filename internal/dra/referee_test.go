// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"reslice.dev/internal/cluster"
	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
)

// sampled is which part of the layouts a short run looks at.
const sampled = 23

// geometry is what the allocator's answers depend on: every partition with the
// counters it consumes. The exact check needs only one board of each.
func geometry(t *testing.T, m *gpu.Model) string {
	var out []string
	for _, s := range mustPools(t, nodeOf(oneGPU(0, m, dra.MIGOn, dra.SharingNone)))[0].Slices {
		for _, d := range s.Devices {
			out = append(out, fmt.Sprint(d.Name, d.ConsumesCounters))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestAllocatorAcceptsExactlyWhatALayoutAccepts asks the scheduler's allocator,
// for every layout of every board, about every profile, and for one board of
// each geometry about every single placement. It must answer as gpu.Layout
// does, and choose the first placement of the published order that fits.
func TestAllocatorAcceptsExactlyWhatALayoutAccepts(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range withMIG(t) {
		g := geometry(t, m)
		exact := !seen[g]
		seen[g] = true
		t.Run(m.ID, func(t *testing.T) {
			t.Parallel()
			r := newReferee(t, m)
			for i, l := range gpu.Layouts(m) {
				if testing.Short() && i%sampled != 0 {
					continue
				}
				r.within(t, l, func() {
					r.checkProfiles(t, l)
					if exact {
						r.checkPlacements(t, l)
					}
				})
			}
			t.Logf("%d questions", r.asked)
		})
	}
}

type referee struct {
	model *gpu.Model
	world *cluster.WhatIf
	pool  dra.Pool
	order []gpu.Partition // as published
	asked int
}

func newReferee(t *testing.T, m *gpu.Model) *referee {
	n := nodeOf(oneGPU(0, m, dra.MIGOn, dra.SharingNone))
	pools := mustPools(t, n)
	r := &referee{model: m, world: whatIf(n, pools), pool: pools[0]}
	for _, s := range r.pool.Slices {
		for _, d := range s.Devices {
			if meaning := r.pool.Devices[d.Name]; meaning.Kind == dra.KindMIG {
				r.order = append(r.order, meaning.Partition)
			}
		}
	}
	return r
}

// within runs a check while the partitions of a layout are allocated.
func (r *referee) within(t *testing.T, l gpu.Layout, check func()) {
	var taken []resourceapi.AllocationResult
	for _, p := range l.Partitions() {
		taken = append(taken, held(r.pool.Name, deviceFor(t, r.pool, p, false)))
	}
	r.world.Commit(taken...)
	check()
	r.world.Release(taken...)
}

// ask returns the partition that the allocator chooses, or nil.
func (r *referee) ask(t *testing.T, a ask) *gpu.Partition {
	r.asked++
	res := allocate(t, r.world, claimOf("c", a))
	if res == nil {
		return nil
	}
	p := r.pool.Devices[res[0].Devices.Results[0].Device].Partition
	return &p
}

func (r *referee) checkProfiles(t *testing.T, l gpu.Layout) {
	for _, prof := range r.model.Profiles {
		var want *gpu.Partition
		for _, p := range r.order {
			if p.Profile == prof.ID && l.Accepts(p) {
				want = &p
				break
			}
		}
		got := r.ask(t, ask{class: dra.ClassMIG, profile: prof.Name, start: -1})
		if (got == nil) != (want == nil) || (got != nil && *got != *want) {
			t.Fatalf("layout %v (%s): allocator chose %v for %s, the law and the order say %v", l, l.Key(), got, prof.Name, want)
		}
	}
}

func (r *referee) checkPlacements(t *testing.T, l gpu.Layout) {
	for _, p := range r.order {
		prof, _ := r.model.Profile(p.Profile)
		got := r.ask(t, ask{class: dra.ClassMIG, profile: prof.Name, start: p.Placement.Start})
		if (got != nil) != l.Accepts(p) {
			t.Fatalf("layout %v (%s): allocator accepts %v: %v, the law: %v", l, l.Key(), p, got != nil, l.Accepts(p))
		}
	}
}
