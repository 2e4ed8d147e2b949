// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	"reslice.dev/internal/gpu"
)

// evaluator computes how many requests of a mix a few GPUs reject under an
// order, as a loss system: requests arrive at random, hold a partition for a
// random time, and are lost if no GPU takes them. GPUs are tried in a fixed
// order, as the scheduler tries pools, so what one GPU rejects is offered to
// the next. The states of a GPU are its layouts; their stationary
// probabilities are computed, not sampled, so the answer has no noise.
type evaluator struct {
	profiles []gpu.ProfileID
	weights  []float64
	parts    []gpu.Partition
	fits     map[uint64]uint64 // state -> partitions that fit
	empty    gpu.Layout
	load     float64
	// left is the work that may still be spent, in states of chains.
	left int
}

const (
	// fleet is how many GPUs stand behind one another. Orders found for two do
	// as well on four and eight, and better on one, than those found for three.
	fleet = 2
	// targetRejections is the load at which orders are compared: where about
	// one request in ten fails, placement matters most.
	targetRejections = 0.10
	// maxStates bounds the search for models with very many profiles.
	maxStates = 4096
	// maxWork bounds the search by counting, not by time, so that it ends in
	// the same place on every machine. The mixes that people name use a tenth.
	maxWork = 400_000
)

// newEvaluator returns nil where there is nothing to choose: no weights, or
// more partitions than a word has bits.
func newEvaluator(m *gpu.Model, mix Mix) *evaluator {
	e := &evaluator{fits: map[uint64]uint64{}, empty: gpu.NewLayout(m), left: maxWork}
	for _, p := range m.Profiles {
		w := mix.share(p.ID)
		if w == 0 {
			continue
		}
		e.profiles = append(e.profiles, p.ID)
		e.weights = append(e.weights, w)
		for _, pl := range p.Placements {
			e.parts = append(e.parts, gpu.Partition{Profile: p.ID, Placement: pl})
		}
	}
	if len(e.parts) == 0 || len(e.parts) > 64 || !e.enumerate() {
		return nil
	}
	e.findLoad()
	return e
}

// enumerate lists every layout of the mix's partitions as a bit set, with the
// partitions that still fit. It reports false for too many.
func (e *evaluator) enumerate() bool {
	var grow func(l gpu.Layout, state uint64) bool
	grow = func(l gpu.Layout, state uint64) bool {
		if _, seen := e.fits[state]; seen {
			return true
		}
		if len(e.fits) >= maxStates {
			return false
		}
		var fits uint64
		for i, p := range e.parts {
			if l.Accepts(p) {
				fits |= 1 << i
			}
		}
		e.fits[state] = fits
		for i, p := range e.parts {
			if fits&(1<<i) == 0 {
				continue
			}
			next, err := l.With(p)
			if err != nil || !grow(next, state|1<<i) {
				return false
			}
		}
		return true
	}
	return grow(e.empty, 0)
}

// findLoad sets the arrival rate at which a plain order rejects about
// targetRejections, by bisection.
func (e *evaluator) findLoad() {
	orders := placements{}
	for _, p := range e.parts {
		orders[p.Profile] = append(orders[p.Profile], p)
	}
	lo, hi := 0.01, 64.0*fleet
	for range 16 {
		e.load = (lo + hi) / 2
		if e.rejections(orders) > targetRejections {
			hi = e.load
		} else {
			lo = e.load
		}
	}
}

// rejections is the part of all requests that the fleet rejects.
func (e *evaluator) rejections(orders placements) float64 {
	chain := e.chain(orders)
	offered := make([]float64, len(e.profiles))
	for i, w := range e.weights {
		offered[i] = e.load * w
	}
	for range fleet {
		lost := chain.lost(offered)
		for i := range offered {
			offered[i] *= lost[i]
		}
	}
	sum := 0.0
	for _, o := range offered {
		sum += o
	}
	return sum / e.load
}

// chain is the Markov chain of one GPU under an order: the states that first
// fit can reach, and where each event leads.
type chain struct {
	arrive [][]int32 // state, profile -> state, or -1 if lost
	leave  [][]int32 // state -> one state for each partition that may end
}

func (e *evaluator) chain(orders placements) chain {
	bits := make([][]uint64, len(e.profiles))
	for i, id := range e.profiles {
		for _, p := range orders[id] {
			bits[i] = append(bits[i], 1<<slices.Index(e.parts, p))
		}
	}
	index := map[uint64]int32{0: 0}
	states := []uint64{0}
	at := func(s uint64) int32 {
		i, ok := index[s]
		if !ok {
			i = int32(len(states))
			index[s] = i
			states = append(states, s)
		}
		return i
	}
	var c chain
	for n := 0; n < len(states); n++ {
		s := states[n]
		fits := e.fits[s]
		arrive := make([]int32, len(bits))
		for i, order := range bits {
			arrive[i] = -1
			if k := slices.IndexFunc(order, func(b uint64) bool { return fits&b != 0 }); k >= 0 {
				arrive[i] = at(s | order[k])
			}
		}
		var leave []int32
		for rest := s; rest != 0; rest &= rest - 1 {
			leave = append(leave, at(s&^(rest&-rest)))
		}
		c.arrive, c.leave = append(c.arrive, arrive), append(c.leave, leave)
	}
	e.left -= len(states)
	return c
}

// lost returns for each profile the probability that a request is lost when
// profiles arrive at these rates and each partition ends at rate 1.
func (c chain) lost(rates []float64) []float64 {
	total, most := 0.0, 0
	for _, r := range rates {
		total += r
	}
	for _, l := range c.leave {
		most = max(most, len(l))
	}
	clock := total + float64(most) // one step of the uniformized chain
	now, next := make([]float64, len(c.leave)), make([]float64, len(c.leave))
	now[0] = 1
	for range maxSteps {
		change := c.step(now, next, rates, clock)
		now, next = next, now
		if change < converged {
			break
		}
	}
	out := make([]float64, len(rates))
	for s, p := range now {
		for i, to := range c.arrive[s] {
			if to < 0 {
				out[i] += p
			}
		}
	}
	return out
}

const (
	maxSteps  = 2000
	converged = 1e-7
)

// step moves the distribution on by one event and returns how much it changed.
func (c chain) step(now, next, rates []float64, clock float64) float64 {
	clear(next)
	for s, p := range now {
		if p == 0 {
			continue
		}
		stay := clock
		for i, to := range c.arrive[s] {
			if to >= 0 {
				next[to] += p * rates[i] / clock
				stay -= rates[i]
			}
		}
		for _, to := range c.leave[s] {
			next[to] += p / clock
			stay--
		}
		next[s] += p * stay / clock
	}
	change := 0.0
	for s := range now {
		change += max(next[s]-now[s], now[s]-next[s])
	}
	return change
}
