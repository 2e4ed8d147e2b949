// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"reslice.dev/internal/cluster"
	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
	"reslice.dev/internal/placement"
)

// completed is what a driver publishes that follows a policy in the present
// state: first what the policy would choose, then all other partitions.
func (a *automaton) completed(p policy, state int16) []gpu.Partition {
	var out []gpu.Partition
	chosen := map[gpu.Partition]bool{}
	for i := range a.profiles {
		if part := p.choose[int(state)*len(a.profiles)+i]; part >= 0 {
			out = append(out, a.parts[part])
			chosen[a.parts[part]] = true
		}
	}
	for _, q := range a.model.Partitions() {
		if !chosen[q] {
			out = append(out, q)
		}
	}
	return out
}

// TestTheSimulatorDecidesAsTheAllocatorDoes plays random requests and ends on
// both: the scheduler's allocator, over the slices that a node publishes, and
// the simulator. Static orders are published once, others after each change.
func TestTheSimulatorDecidesAsTheAllocatorDoes(t *testing.T) {
	for _, c := range []struct {
		board, mix, policy string
		republish          bool
		requests           int
	}{
		{"h100-80gb", "uniform", oursKnown, false, 400},
		{"h100-80gb", "inference", oursKnown, false, 400},
		{"h100-80gb", "small", lowToHigh, false, 400},
		{"h100-80gb", "small", bestFit, true, 150},
		{"a30-24gb", "inference", oursKnown, false, 400},
		{"a30-24gb", "small", fixedSides, false, 400},
	} {
		t.Run(fmt.Sprintf("%s %s %s", c.board, c.mix, c.policy), func(t *testing.T) {
			t.Parallel()
			m, err := models.ByID(c.board)
			if err != nil {
				t.Fatal(err)
			}
			a, p := policyFor(t, m, c.mix, c.policy)
			d := &duel{t: t, a: a, policy: p, republish: c.republish, fleet: newFleet(a, churnGPUs, c.requests)}
			if c.policy == oursKnown {
				d.mix = a.mix
			}
			d.publish()
			d.play(newWorkload(a.weights, a.exactLoad(p, 1)*churnGPUs*1.5, c.requests, exponential, 7))
		})
	}
}

func policyFor(t *testing.T, m *gpu.Model, mix, name string) (*automaton, policy) {
	t.Helper()
	for _, n := range mixes {
		if n.name != mix {
			continue
		}
		a, _, err := n.automatonOn(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range a.policies(1) {
			if p.name == name {
				return a, p
			}
		}
	}
	t.Fatalf("no policy %s for mix %s", name, mix)
	return nil, policy{}
}

type duel struct {
	t         *testing.T
	a         *automaton
	policy    policy
	republish bool
	mix       placement.Mix // nil: the order is given
	fleet     *fleet
	world     *cluster.WhatIf
	pools     []dra.Pool
}

// publish renders the node as the driver would, at first and on each change.
func (d *duel) publish() {
	d.t.Helper()
	n := nodeOf(d.a.model, churnGPUs, dra.SharingAll, nil)
	for i := range n.GPUs {
		switch {
		case d.mix != nil:
			n.GPUs[i].Mix = d.mix
		case d.republish:
			n.GPUs[i].Order = d.a.completed(d.policy, d.fleet.states[i])
		default:
			n.GPUs[i].Order = d.staticOrder()
		}
	}
	pools, err := dra.Pools(n)
	if err != nil {
		d.t.Fatal(err)
	}
	d.pools = pools
	slices := dra.ResourceSlices(n, pools)
	if d.world == nil {
		d.world = cluster.NewWhatIf(cluster.StockFeatures, slices, dra.DeviceClasses(""))
		return
	}
	d.world.SetSlices(slices)
}

// staticOrder writes the orders of low to high and of fixed sides anew.
func (d *duel) staticOrder() []gpu.Partition {
	if d.policy.name == lowToHigh {
		return d.a.model.Partitions()
	}
	var ordered []gpu.Partition
	for _, prof := range d.a.model.Profiles {
		high := prof.ComputeSlices == 1 || prof.ComputeSlices == 3
		for i := range prof.Placements {
			if high {
				i = len(prof.Placements) - 1 - i
			}
			ordered = append(ordered, gpu.Partition{Profile: prof.ID, Placement: prof.Placements[i]})
		}
	}
	return ordered
}

func (d *duel) play(w workload) {
	held := map[int32]resourceapi.AllocationResult{}
	served, lost := 0, 0
	for _, ev := range w.events {
		if ev < 0 {
			if r, ok := held[^ev]; ok {
				d.world.Release(r)
			}
			d.fleet.end(^ev)
		} else {
			prof, _ := d.a.model.Profile(d.a.profiles[w.profile[ev]])
			got, err := d.world.Allocate(context.Background(), cluster.NodeNamed(benchNode), claimFor(prof.Name))
			if err != nil {
				d.t.Fatal(err)
			}
			fits := d.fleet.arrive(d.policy, ev, w.profile[ev])
			if fits != (got != nil) {
				d.t.Fatalf("request %d for %s: allocator %v, simulator %v", ev, prof.Name, got != nil, fits)
			}
			if !fits {
				lost++
				continue
			}
			served++
			r := got[0].Devices.Results[0]
			where := d.fleet.where[ev]
			if want := d.a.parts[where.part]; r.Pool != d.pools[where.gpu].Name || d.pools[where.gpu].Devices[r.Device].Partition != want {
				d.t.Fatalf("request %d: allocator chose %s of %s, simulator %v of GPU %d", ev, r.Device, r.Pool, want, where.gpu)
			}
			held[ev] = got[0]
			d.world.Commit(got[0])
		}
		if d.republish {
			d.publish()
		}
	}
	if lost == 0 || served < 50 {
		d.t.Errorf("%d served, %d rejected: too easy to prove anything", served, lost)
	}
}
