// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	"reslice.dev/internal/gpu"
)

// Fits lists where a profile can still go in a layout, by ascending start. It
// is empty where nothing fits, or the model has no such profile.
func Fits(l gpu.Layout, id gpu.ProfileID) []gpu.Placement {
	if l.Model() == nil {
		return nil
	}
	p, _ := l.Model().Profile(id)
	var out []gpu.Placement
	for _, pl := range p.Placements {
		if l.Accepts(gpu.Partition{Profile: id, Placement: pl}) {
			out = append(out, pl)
		}
	}
	return out
}

// Room is how many instances of a profile can still be added to a layout
// together. Placements of one profile have one size, so taking the leftmost
// that fits, again and again, finds the most.
func Room(l gpu.Layout, id gpu.ProfileID) int {
	if l.Model() == nil {
		return 0
	}
	p, _ := l.Model().Profile(id)
	n := 0
	for _, pl := range p.Placements {
		if next, err := l.With(gpu.Partition{Profile: id, Placement: pl}); err == nil {
			l, n = next, n+1
		}
	}
	return n
}

// Fragmentation says how much of a GPU's free room is lost to the requests of
// a mix because of where the partitions sit, from 0 (nothing: the free slices
// hold as many instances as any arrangement of the same partitions' sizes
// could) to 1 (free slices, and none of them usable). Profiles that would not
// fit in that much free room anyway do not count. It is 0 for a full GPU.
func Fragmentation(l gpu.Layout, mix Mix) float64 {
	m := l.Model()
	if m == nil {
		return 0
	}
	memory, compute := m.MemorySlices, m.ComputeSlices
	for _, q := range l.Partitions() {
		p, _ := m.Profile(q.Profile)
		memory -= p.MemorySlices
		compute -= p.ComputeSlices
	}
	lost, total := 0.0, 0.0
	for _, w := range mix.Normalized() {
		p, ok := m.Profile(w.Profile)
		if !ok {
			continue
		}
		ideal := min(memory/p.MemorySlices, compute/p.ComputeSlices, Room(gpu.NewLayout(m), p.ID))
		if ideal == 0 {
			continue
		}
		total += w.Value
		lost += w.Value * (1 - float64(min(Room(l, p.ID), ideal))/float64(ideal))
	}
	if total == 0 {
		return 0
	}
	return lost / total
}

// Destroyed is what a partition costs a layout: for each profile of the mix,
// the share of its placements that still fit now and would no longer fit, with
// the mix's weights. The partition's own profile does not count, since it is
// what was asked for.
func Destroyed(l gpu.Layout, p gpu.Partition, mix Mix) float64 {
	return destroyed(l, p, mix.Normalized())
}

// destroyed is Destroyed for a mix that is normalized.
func destroyed(l gpu.Layout, p gpu.Partition, mix Mix) float64 {
	next, err := l.With(p)
	if err != nil {
		return 0
	}
	sum := 0.0
	for _, w := range mix {
		if w.Profile == p.Profile {
			continue
		}
		prof, ok := l.Model().Profile(w.Profile)
		if !ok {
			continue
		}
		lost := 0
		for _, pl := range prof.Placements {
			q := gpu.Partition{Profile: prof.ID, Placement: pl}
			if l.Accepts(q) && !next.Accepts(q) {
				lost++
			}
		}
		sum += w.Value * float64(lost) / float64(len(prof.Placements))
	}
	return sum
}

// BestFit is where a profile destroys least in a layout, or false where it
// does not fit. Of equal placements the one with the higher start wins: the
// low end holds the only placement of 4g on boards with eight slices.
func BestFit(l gpu.Layout, id gpu.ProfileID, mix Mix) (gpu.Partition, bool) {
	fits := Fits(l, id)
	mix = mix.Normalized()
	slices.Reverse(fits)
	var best gpu.Partition
	cost := 0.0
	for i, pl := range fits {
		p := gpu.Partition{Profile: id, Placement: pl}
		if c := destroyed(l, p, mix); i == 0 || c < cost-epsilon {
			best, cost = p, c
		}
	}
	return best, len(fits) > 0
}

// epsilon is the least difference that counts: floating point may be fused on
// some processors, and a golden order must be the same on all.
const epsilon = 1e-9
