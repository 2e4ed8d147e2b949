// SPDX-License-Identifier: Apache-2.0

package main

import "math/bits"

// The machinery of this file is exact, for one GPU: requests arrive at random,
// hold their partition for an exponential time, and the stationary
// probabilities of the layouts are computed, not sampled.

const (
	maxSweeps = 20000
	converged = 1e-9
)

// clock is the rate of the uniformized chain: one arrival or one end a step.
func (a *automaton) clock(rate float64) float64 {
	most := 0
	for _, parts := range a.held {
		most = max(most, len(parts))
	}
	return rate + float64(most)
}

// stationary is how likely each layout of one GPU is under a policy when
// profiles arrive at these rates.
func (a *automaton) stationary(p policy, rates []float64) []float64 {
	total := 0.0
	for _, r := range rates {
		total += r
	}
	clock := a.clock(total)
	now, next := make([]float64, len(a.layouts)), make([]float64, len(a.layouts))
	now[0] = 1
	for range maxSweeps {
		clear(next)
		for s, mass := range now {
			if mass == 0 {
				continue
			}
			stay := clock
			for i, r := range rates {
				if part := p.choose[s*len(a.profiles)+i]; part >= 0 {
					next[a.move(int16(s), int(part))] += mass * r / clock
					stay -= r
				}
			}
			for _, part := range a.held[s] {
				next[a.move(int16(s), part)] += mass / clock
				stay--
			}
			next[s] += mass * stay / clock
		}
		change := 0.0
		for s := range now {
			change += max(next[s]-now[s], now[s]-next[s])
		}
		now, next = next, now
		if change < converged {
			break
		}
	}
	return now
}

// exact is the part of the requests that a row of GPUs rejects: what one
// rejects is offered to the next. For one GPU it is exact; for more it takes
// the rejected requests for a random stream, which they nearly are.
func (a *automaton) exact(p policy, rate float64, gpus int) float64 {
	offered := make([]float64, len(a.weights))
	for i, w := range a.weights {
		offered[i] = w * rate
	}
	for range gpus {
		lost := make([]float64, len(offered))
		for s, mass := range a.stationary(p, offered) {
			for i := range offered {
				if p.choose[s*len(a.profiles)+i] < 0 {
					lost[i] += mass * offered[i]
				}
			}
		}
		offered = lost
	}
	sum := 0.0
	for _, o := range offered {
		sum += o
	}
	return sum / rate
}

// optimum is the best that any policy can do on one GPU that takes whatever
// fits and does not know the future: for each layout and profile the placement
// with the least expected rejections from there on, by value iteration.
func (a *automaton) optimum(name string, rate float64) policy {
	clock := a.clock(rate)
	value, next := make([]float64, len(a.layouts)), make([]float64, len(a.layouts))
	for range maxSweeps {
		low, high := 0.0, 0.0
		for s := range value {
			v, stay := 0.0, clock
			for i, w := range a.weights {
				if part := a.cheapest(value, s, i); part >= 0 {
					v += w * rate * value[a.move(int16(s), part)]
				} else {
					v += w * rate * (1 + value[s])
				}
				stay -= w * rate
			}
			for _, part := range a.held[s] {
				v += value[a.move(int16(s), part)]
				stay--
			}
			next[s] = (v + stay*value[s]) / clock
			if d := next[s] - value[s]; s == 0 {
				low, high = d, d
			} else {
				low, high = min(low, d), max(high, d)
			}
		}
		for s := range next {
			value[s] = next[s] - next[0]
		}
		if high-low < converged {
			break
		}
	}
	return a.policyOf(name, func(s, i int) int { return a.cheapest(value, s, i) })
}

// cheapest is the placement of a profile that leads to the state of least
// value, -1 if none fits.
func (a *automaton) cheapest(value []float64, s, profile int) int {
	best := -1
	for rest := a.fits[s]; rest != 0; rest &= rest - 1 {
		part := bits.TrailingZeros64(rest)
		if a.parts[part].Profile != a.profiles[profile] {
			continue
		}
		if best < 0 || value[a.move(int16(s), part)] < value[a.move(int16(s), best)]-converged {
			best = part
		}
	}
	return best
}
