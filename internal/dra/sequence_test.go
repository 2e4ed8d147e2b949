// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"fmt"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
)

// silicon is what one GPU really holds: the referee of the sequences below. It
// knows nothing of counters, only the law of layouts and that a whole GPU and
// its partitions are the same silicon.
type silicon struct {
	pool   dra.Pool
	model  *gpu.Model
	layout gpu.Layout
	whole  bool
	shares map[string]int64 // device -> memory taken by its shares, in bytes
	users  map[string]int   // device -> shares on it
}

// room reports whether a device can take a request of so much memory.
func (s *silicon) room(d dra.Device, memory int64) bool {
	if s.users[d.Name] > 0 {
		return s.shares[d.Name]+s.memory(d, memory) <= s.size(d) && s.users[d.Name] < s.clients(d)
	}
	if s.memory(d, memory) > s.size(d) {
		return false
	}
	if d.Kind == dra.KindGPU {
		return !s.whole && s.layout.Len() == 0
	}
	return !s.whole && s.layout.Accepts(d.Partition)
}

// clients is how many shares of one client each a device holds.
func (s *silicon) clients(d dra.Device) int {
	p, _ := s.model.Profile(d.Partition.Profile)
	if d.Kind == dra.KindGPU {
		p.ComputeSlices = 0
	}
	return s.model.MPSClients(13010, p.ComputeSlices)
}

func (s *silicon) size(d dra.Device) int64 {
	if d.Kind == dra.KindGPU {
		return s.model.MemoryBytes
	}
	p, _ := s.model.Profile(d.Partition.Profile)
	return p.MemoryBytes
}

func (s *silicon) memory(d dra.Device, asked int64) int64 {
	if asked == 0 {
		return s.size(d)
	}
	return max(asked, dra.MinShareBytes)
}

func (s *silicon) take(t tb, d dra.Device, memory int64) {
	if !s.room(d, memory) {
		t.Fatalf("allocator gave out %s over what the silicon holds: layout %v, whole %v, shares %v", d.Name, s.layout, s.whole, s.shares)
	}
	if d.Shared {
		s.shares[d.Name] += s.memory(d, memory)
		s.users[d.Name]++
		if s.users[d.Name] > 1 {
			return
		}
	}
	if d.Kind == dra.KindGPU {
		s.whole = true
		return
	}
	next, err := s.layout.With(d.Partition)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.layout = next
}

func (s *silicon) free(d dra.Device, memory int64) {
	if d.Shared {
		s.shares[d.Name] -= s.memory(d, memory)
		s.users[d.Name]--
		if s.users[d.Name] > 0 {
			return
		}
	}
	if d.Kind == dra.KindGPU {
		s.whole = false
		return
	}
	s.layout = s.layout.Without(d.Partition)
}

// matches says which devices a request may get, without the scheduler's CEL.
func matches(a ask, d dra.Device, m *gpu.Model) bool {
	label := ""
	if d.Kind == dra.KindMIG {
		p, _ := m.Profile(d.Partition.Profile)
		label = p.Name
	}
	if d.Kind == dra.KindMonitor || (a.profile != "" && a.profile != label) {
		return false
	}
	switch a.class {
	case dra.ClassGPU:
		return d.Kind == dra.KindGPU && !d.Shared
	case dra.ClassMIG:
		return d.Kind == dra.KindMIG && !d.Shared
	case dra.ClassSlice:
		return !d.Shared
	case dra.ClassShare:
		return d.Shared
	}
	return false
}

type sequence struct {
	t     *rapid.T
	gpus  []*silicon
	node  dra.Node
	pools []dra.Pool
	live  map[string]holding
}

type holding struct {
	result resourceapi.AllocationResult
	asks   []ask
}

// feasible searches by itself whether all requests can be met together.
func (s *sequence) feasible(asks []ask) bool {
	if len(asks) == 0 {
		return true
	}
	for _, g := range s.gpus {
		for _, d := range devicesOf(g.pool) {
			if !matches(asks[0], d, g.model) || !g.room(d, asks[0].memory) {
				continue
			}
			g.take(s.t, d, asks[0].memory)
			ok := s.feasible(asks[1:])
			g.free(d, asks[0].memory)
			if ok {
				return true
			}
		}
	}
	return false
}

func devicesOf(p dra.Pool) []dra.Device {
	var out []dra.Device
	for _, s := range p.Slices {
		for _, d := range s.Devices {
			out = append(out, p.Devices[d.Name])
		}
	}
	return out
}

func (s *sequence) settle(h holding, take bool) {
	for i, r := range h.result.Devices.Results {
		g := s.gpus[slices.IndexFunc(s.gpus, func(g *silicon) bool { return g.pool.Name == r.Pool })]
		d := g.pool.Devices[r.Device]
		if !matches(h.asks[i], d, g.model) {
			s.t.Fatalf("request %+v got %s", h.asks[i], r.Device)
		}
		if take {
			g.take(s.t, d, h.asks[i].memory)
		} else {
			g.free(d, h.asks[i].memory)
		}
	}
}

// drawAsk draws a request that makes sense for some GPU of the node.
func (s *sequence) drawAsk() ask {
	a := ask{start: -1, class: rapid.SampledFrom([]string{dra.ClassGPU, dra.ClassMIG, dra.ClassMIG, dra.ClassSlice, dra.ClassShare, dra.ClassShare}).Draw(s.t, "class")}
	m := rapid.SampledFrom(s.gpus).Draw(s.t, "like").model
	if len(m.Profiles) > 0 && a.class != dra.ClassGPU && rapid.Bool().Draw(s.t, "by profile") {
		a.profile = rapid.SampledFrom(m.Profiles).Draw(s.t, "profile").Name
	}
	if a.class == dra.ClassShare && rapid.IntRange(0, 3).Draw(s.t, "whole device") > 0 {
		a.memory = rapid.Int64Range(1, 40).Draw(s.t, "GiB") << 30
	}
	return a
}

// TestSchedulerAndSiliconAgreeOnRandomSequences plays random claims with one
// to three requests on nodes of several models, in every mode that a node can
// publish: the allocator must never give out what the silicon cannot hold, and
// must find a way whenever there is one.
func TestSchedulerAndSiliconAgreeOnRandomSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &sequence{t: t, live: map[string]holding{}}
		for i := range rapid.IntRange(1, 3).Draw(t, "GPUs") {
			m := mustModel(t, rapid.SampledFrom([]string{"h100-80gb", "h200-141gb", "a30-24gb", "a100-40gb", "rtxpro6000-96gb", "t4-16gb"}).Draw(t, "model"))
			policy := rapid.SampledFrom([]dra.MIGPolicy{dra.MIGOn, dra.MIGDynamic, dra.MIGOff}).Draw(t, "MIG")
			sharing := rapid.SampledFrom([]dra.Sharing{dra.SharingNone, dra.SharingGPU, dra.SharingMIG, dra.SharingAll, dra.SharingAll}).Draw(t, "sharing")
			s.node.GPUs = append(s.node.GPUs, oneGPU(i, m, policy, sharing))
			s.gpus = append(s.gpus, &silicon{model: m, layout: gpu.NewLayout(m), shares: map[string]int64{}, users: map[string]int{}})
		}
		s.node = nodeOf(s.node.GPUs...)
		s.pools = mustPools(t, s.node)
		for i := range s.gpus {
			s.gpus[i].pool = s.pools[i]
		}
		w := whatIf(s.node, s.pools)
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			if len(s.live) > 0 && rapid.IntRange(0, 2).Draw(t, "end one") == 0 {
				keys := []string{}
				for k := range s.live {
					keys = append(keys, k)
				}
				slices.Sort(keys)
				k := rapid.SampledFrom(keys).Draw(t, "ends")
				w.Release(s.live[k].result)
				s.settle(s.live[k], false)
				delete(s.live, k)
				continue
			}
			var asks []ask
			for range rapid.IntRange(1, 3).Draw(t, "requests") {
				asks = append(asks, s.drawAsk())
			}
			uid := fmt.Sprintf("claim-%d", i)
			res := allocate(t, w, claimOf(uid, asks...))
			if (res != nil) != s.feasible(asks) {
				t.Fatalf("allocator: %v, silicon: %v for %+v", res != nil, s.feasible(asks), asks)
			}
			if res == nil {
				continue
			}
			h := holding{res[0], asks}
			s.settle(h, true)
			w.Commit(h.result)
			s.live[uid] = h
		}
	})
}
