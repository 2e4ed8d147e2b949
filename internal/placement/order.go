// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"math"
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
// 3g is the largest size asked for. So the order is searched for: from every
// choice of sides, by swapping placements of a profile as long as the expected
// rate of rejected requests falls. Profiles that the mix does not name
// destroy as little as they can.
//
// The answer depends on the model and the mix alone. It takes some tenths of
// a second for a board with eight slices; callers keep it.
func Order(m *gpu.Model, mix Mix) []gpu.Partition {
	if !m.HasMIG() {
		return nil
	}
	mix = mix.Normalized()
	orders := make(placements, len(m.Profiles))
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
		switch d := destroyed(empty, a, mix) - destroyed(empty, b, mix); {
		case d < -epsilon:
			return -1
		case d > epsilon:
			return 1
		}
		return 0
	})
	return append(out, rest...)
}

const (
	// maxRounds bounds one climb; on every known board it ends after a few.
	maxRounds = 12
	// climbs is how many of the best starts are climbed from. From one alone
	// the search ends in a poor local optimum on some mixes.
	climbs = 3
	// maxSides bounds the starts, which double with each profile of the mix.
	maxSides = 6
)

// placements holds the order of placements of each profile.
type placements map[gpu.ProfileID][]gpu.Partition

func (o placements) clone() placements {
	out := make(placements, len(o))
	for id, parts := range o {
		out[id] = slices.Clone(parts)
	}
	return out
}

// candidate is an order and the rejections it leads to.
type candidate struct {
	order      placements
	rejections float64
}

// improve replaces the orders of the mix's profiles by the best that it finds:
// it starts from every choice of sides, and climbs from the best starts.
func improve(m *gpu.Model, mix Mix, orders placements) {
	e := newEvaluator(m, mix)
	if e == nil {
		return
	}
	starts := []candidate{{orders.clone(), e.rejections(orders)}}
	for _, o := range e.sides(orders) {
		starts = append(starts, candidate{o, e.rejections(o)})
	}
	// Stable, and by differences that count: every processor sorts the same.
	slices.SortStableFunc(starts, func(a, b candidate) int {
		return cmp.Compare(math.Round(a.rejections/minGain), math.Round(b.rejections/minGain))
	})
	var best candidate
	for i, c := range starts[:min(climbs, len(starts))] {
		c = e.climb(c)
		if i == 0 || c.rejections < best.rejections*(1-minGain) {
			best = c
		}
	}
	for id, o := range best.order {
		orders[id] = o
	}
}

// sides lists the orders in which each profile fills from the low or from the
// high end.
func (e *evaluator) sides(from placements) []placements {
	if len(e.profiles) > maxSides {
		return nil
	}
	var out []placements
	for choice := range 1 << len(e.profiles) {
		o := from.clone()
		for i, id := range e.profiles {
			slices.SortFunc(o[id], gpu.ComparePartitions)
			if choice&(1<<i) != 0 {
				slices.Reverse(o[id])
			}
		}
		out = append(out, o)
	}
	return out
}

// climb swaps placements within profiles as long as that lowers the expected
// rejections.
func (e *evaluator) climb(c candidate) candidate {
	for range maxRounds {
		improved := false
		for _, id := range e.profiles {
			o := c.order[id]
			for i := range o {
				for j := i + 1; j < len(o) && e.left > 0; j++ {
					o[i], o[j] = o[j], o[i]
					if r := e.rejections(c.order); r < c.rejections*(1-minGain) {
						c.rejections, improved = r, true
						continue
					}
					o[i], o[j] = o[j], o[i]
				}
			}
		}
		if !improved {
			break
		}
	}
	return c
}

// minGain is the least relative gain that a swap must bring. It is far above
// floating-point noise, so that every processor finds the same order.
const minGain = 1e-4
