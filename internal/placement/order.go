// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	"reslice.dev/internal/gpu"
)

// Order is the order in which to publish the partitions of a GPU to a
// scheduler that takes the first that fits: profiles from small to large, so
// that a request for "at least so much" gets no more than it needs, and within
// a profile the placements in the order that makes the fewest later requests
// of the mix fail.
//
// No fixed direction is best for every mix: from the high end saves the only
// place of a 4g, from the low end wastes less of the last memory slice where
// 3g is the largest size asked for. So the order is searched for, by swapping
// placements of a profile as long as the expected rate of rejected requests
// falls, as [rejections] computes it. Profiles that the mix does not name
// destroy as little as they can.
//
// The answer depends on the model and the mix alone. It takes some tens of
// milliseconds for a board with eight slices; callers keep it.
func Order(m *gpu.Model, mix Mix) []gpu.Partition {
	if !m.HasMIG() {
		return nil
	}
	orders := make(map[gpu.ProfileID][]gpu.Partition, len(m.Profiles))
	for _, p := range m.Profiles {
		orders[p.ID] = leastDestroyed(m, p, mix)
	}
	improve(m, mix, orders)
	var out []gpu.Partition
	for _, p := range m.Profiles {
		out = append(out, orders[p.ID]...)
	}
	return out
}

// leastDestroyed orders the placements of one profile as if they filled an
// empty GPU one after the other, each where it destroys least of what the ones
// before it left.
func leastDestroyed(m *gpu.Model, p gpu.Profile, mix Mix) []gpu.Partition {
	var out []gpu.Partition
	l := gpu.NewLayout(m)
	for {
		best, ok := BestFit(l, p.ID, mix)
		if !ok {
			break
		}
		out = append(out, best)
		l, _ = l.With(best)
	}
	// A profile that may exist only once still has several placements.
	var rest []gpu.Partition
	for _, pl := range slices.Backward(p.Placements) {
		if q := (gpu.Partition{Profile: p.ID, Placement: pl}); !slices.Contains(out, q) {
			rest = append(rest, q)
		}
	}
	empty := gpu.NewLayout(m)
	slices.SortStableFunc(rest, func(a, b gpu.Partition) int {
		switch d := Destroyed(empty, a, mix) - Destroyed(empty, b, mix); {
		case d < -epsilon:
			return -1
		case d > epsilon:
			return 1
		}
		return 0
	})
	return append(out, rest...)
}

// maxRounds bounds the search; on every known board it ends after a few.
const maxRounds = 12

// improve swaps placements within profiles of the mix while that lowers the
// expected rejections, the best swap of each round first.
func improve(m *gpu.Model, mix Mix, orders map[gpu.ProfileID][]gpu.Partition) {
	e := newEvaluator(m, mix)
	if e == nil {
		return
	}
	best := e.rejections(orders)
	for range maxRounds {
		improved := false
		for _, id := range e.profiles {
			o := orders[id]
			for i := range o {
				for j := i + 1; j < len(o); j++ {
					o[i], o[j] = o[j], o[i]
					if r := e.rejections(orders); r < best*(1-minGain) {
						best, improved = r, true
						continue
					}
					o[i], o[j] = o[j], o[i]
				}
			}
		}
		if !improved {
			return
		}
	}
}

// minGain is the least relative gain that a swap must bring. It is far above
// floating-point noise, so that every processor finds the same order.
const minGain = 1e-4
