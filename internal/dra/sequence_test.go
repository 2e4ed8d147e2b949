// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"fmt"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"reslice.dev/internal/cluster"
	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
)

// silicon is what one GPU really holds: the referee of the sequences below. It
// knows nothing of counters, only the law of layouts and that a whole GPU and
// its partitions are the same silicon.
type silicon struct {
	pool    dra.Pool
	setting dra.GPU // what the operator and faults say now
	model   *gpu.Model
	layout  gpu.Layout
	whole   bool
	shares  map[string]amounts // device -> what its shares took
	users   map[string]int     // device -> shares on it
}

// amounts are what a share takes, or what a device has to share.
type amounts struct{ memory, sms, clients int64 }

func (a amounts) plus(b amounts, sign int64) amounts {
	return amounts{a.memory + sign*b.memory, a.sms + sign*b.sms, a.clients + sign*b.clients}
}

func (a amounts) within(b amounts) bool {
	return a.memory <= b.memory && a.sms <= b.sms && a.clients <= b.clients
}

// room reports whether a device can take a request.
func (s *silicon) room(d dra.Device, a ask) bool {
	if d.Shared && !s.shares[d.Name].plus(s.taken(d, a), 1).within(s.size(d)) {
		return false
	}
	switch {
	case s.users[d.Name] > 0:
		return true
	case a.memory > s.size(d).memory: // on exclusive devices it filters
		return false
	case d.Kind == dra.KindGPU:
		return !s.whole && s.layout.Len() == 0
	}
	return !s.whole && s.layout.Accepts(d.Partition)
}

func (s *silicon) size(d dra.Device) amounts {
	if d.Kind == dra.KindGPU {
		return amounts{s.model.MemoryBytes, int64(s.model.Multiprocessors), int64(s.model.MPSClients(13010, 0))}
	}
	p, _ := s.model.Profile(d.Partition.Profile)
	return amounts{p.MemoryBytes, int64(p.Multiprocessors), int64(s.model.MPSClients(13010, p.ComputeSlices))}
}

// taken is what a share takes that asks for so much: all the memory, no SM and
// one client by default.
func (s *silicon) taken(d dra.Device, a ask) amounts {
	out := amounts{max(a.memory, dra.MinShareBytes), a.sms, max(a.clients, 1)}
	if a.memory == 0 {
		out.memory = s.size(d).memory
	}
	return out
}

func (s *silicon) take(t tb, d dra.Device, a ask) {
	if !s.room(d, a) {
		t.Fatalf("allocator gave out %s over what the silicon holds: layout %v, whole %v, shares %v", d.Name, s.layout, s.whole, s.shares)
	}
	if d.Shared {
		s.shares[d.Name] = s.shares[d.Name].plus(s.taken(d, a), 1)
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

func (s *silicon) free(d dra.Device, a ask) {
	if d.Shared {
		s.shares[d.Name] = s.shares[d.Name].plus(s.taken(d, a), -1)
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

// closed reports whether a device takes no new claims: because of a fault, or
// because the settings do not offer it and it is only there for its holder.
func (s *silicon) closed(d dra.Device) bool {
	for _, t := range s.setting.Taints {
		if t.On == nil || d.Kind == dra.KindGPU || t.On.Overlaps(d.Partition.Placement) {
			return true
		}
	}
	offer := dra.OfferOf(s.setting.GPU, s.setting.MIG)
	sharing := s.setting.Sharing
	if d.Kind == dra.KindGPU {
		return !offer.Whole || (d.Shared && sharing != dra.SharingGPU && sharing != dra.SharingAll)
	}
	return !offer.MIG || (d.Shared && sharing != dra.SharingMIG && sharing != dra.SharingAll)
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

var (
	policies = []dra.MIGPolicy{dra.MIGOn, dra.MIGDynamic, dra.MIGOff}
	sharings = []dra.Sharing{dra.SharingNone, dra.SharingGPU, dra.SharingMIG, dra.SharingAll, dra.SharingAll}
)

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
			if g.closed(d) || !matches(asks[0], d, g.model) || !g.room(d, asks[0]) {
				continue
			}
			g.take(s.t, d, asks[0])
			ok := s.feasible(asks[1:])
			g.free(d, asks[0])
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
		if !matches(h.asks[i], d, g.model) || (take && g.closed(d)) {
			s.t.Fatalf("request %+v got %s", h.asks[i], r.Device)
		}
		if take {
			g.take(s.t, d, h.asks[i])
		} else {
			g.free(d, h.asks[i])
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
	if a.class == dra.ClassShare {
		a.sms = rapid.SampledFrom([]int64{0, 0, 1, 16, 46, 132, 133}).Draw(s.t, "SMs")
		a.clients = rapid.SampledFrom([]int64{0, 0, 1, 7, 30, 60}).Draw(s.t, "clients")
	}
	return a
}

// change lets the operator set something else on one GPU, or a fault taint a
// part of it, while claims hold devices.
func (s *sequence) change(w *cluster.WhatIf) {
	i := rapid.IntRange(0, len(s.gpus)-1).Draw(s.t, "changed GPU")
	g := &s.node.GPUs[i]
	g.MIG = rapid.SampledFrom(policies).Draw(s.t, "new MIG")
	g.Sharing = rapid.SampledFrom(sharings).Draw(s.t, "new sharing")
	if g.MIGMode != gpu.MIGUnsupported {
		g.MIGMode = rapid.SampledFrom([]gpu.MIGMode{gpu.MIGDisabled, gpu.MIGEnabled}).Draw(s.t, "new mode")
	}
	g.Taints = nil
	if rapid.Bool().Draw(s.t, "fault") {
		t := dra.Taint{Reason: "test", Effect: resourceapi.DeviceTaintEffectNoSchedule}
		if parts := g.Model.Partitions(); len(parts) > 0 && rapid.Bool().Draw(s.t, "of a part") {
			at := rapid.SampledFrom(parts).Draw(s.t, "faulty").Placement
			t.On = &at
		}
		g.Taints = []dra.Taint{t}
	}
	g.Held = nil
	for _, h := range s.live {
		for _, r := range h.result.Devices.Results {
			if d, ok := s.gpus[i].pool.Devices[r.Device]; ok && r.Pool == s.gpus[i].pool.Name {
				g.Held = append(g.Held, dra.Held{Kind: d.Kind, Partition: d.Partition, Shared: d.Shared})
			}
		}
	}
	s.publish()
	w.SetSlices(dra.ResourceSlices(s.node, s.pools))
	for _, h := range s.live {
		for _, r := range h.result.Devices.Results {
			g := s.gpus[slices.IndexFunc(s.gpus, func(g *silicon) bool { return g.pool.Name == r.Pool })]
			if _, ok := g.pool.Devices[r.Device]; !ok {
				s.t.Fatalf("%s is held and no longer published", r.Device)
			}
		}
	}
}

func (s *sequence) publish() {
	s.pools = mustPools(s.t, s.node)
	for i := range s.gpus {
		s.gpus[i].pool, s.gpus[i].setting = s.pools[i], s.node.GPUs[i]
		checkPool(s.t, s.pools[i])
	}
}

// TestSchedulerAndSiliconAgreeOnRandomSequences plays random claims with one
// to three requests on nodes of several models, in every mode that a node can
// publish, while the operator changes settings and faults come and go: the
// allocator must never give out what the silicon cannot hold, and must find a
// way whenever there is one.
func TestSchedulerAndSiliconAgreeOnRandomSequences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &sequence{t: t, live: map[string]holding{}}
		for i := range rapid.IntRange(1, 3).Draw(t, "GPUs") {
			m := mustModel(t, rapid.SampledFrom([]string{"h100-80gb", "h200-141gb", "a30-24gb", "a100-40gb", "rtxpro6000-96gb", "t4-16gb"}).Draw(t, "model"))
			policy := rapid.SampledFrom(policies).Draw(t, "MIG")
			sharing := rapid.SampledFrom(sharings).Draw(t, "sharing")
			s.node.GPUs = append(s.node.GPUs, oneGPU(i, m, policy, sharing))
			s.gpus = append(s.gpus, &silicon{model: m, layout: gpu.NewLayout(m), shares: map[string]amounts{}, users: map[string]int{}})
		}
		s.node = nodeOf(s.node.GPUs...)
		s.publish()
		w := whatIf(s.node, s.pools)
		for i := range rapid.IntRange(1, 25).Draw(t, "steps") {
			if rapid.IntRange(0, 7).Draw(t, "change settings") == 0 {
				s.change(w)
			}
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
			// The requests come in one claim or in two of the same pod.
			cut := rapid.IntRange(0, len(asks)-1).Draw(t, "in the first of two claims")
			uid := fmt.Sprintf("claim-%d", i)
			claims := []*resourceapi.ResourceClaim{claimOf(uid, asks[cut:]...)}
			if cut > 0 {
				claims = []*resourceapi.ResourceClaim{claimOf(uid+"-first", asks[:cut]...), claims[0]}
			}
			res := allocate(t, w, claims...)
			if (res != nil) != s.feasible(asks) {
				t.Fatalf("allocator: %v, silicon: %v for %+v", res != nil, s.feasible(asks), asks)
			}
			if res == nil {
				continue
			}
			for j, r := range res {
				h := holding{r, asks[cut:]}
				if j < len(res)-1 {
					h.asks = asks[:cut]
				}
				s.settle(h, true)
				w.Commit(h.result)
				s.live[string(claims[j].UID)] = h
			}
		}
	})
}
