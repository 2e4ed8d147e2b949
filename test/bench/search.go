// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// exactLoad is the rate at which a row of GPUs under a policy rejects about
// targetRejected.
func (a *automaton) exactLoad(p policy, gpus int) float64 {
	lo, hi := 0.0, float64(16*gpus)
	for range 18 {
		mid := (lo + hi) / 2
		if a.exact(p, mid, gpus) > targetRejected {
			hi = mid
		} else {
			lo = mid
		}
	}
	return (lo + hi) / 2
}

// bestStatic tries every order of every profile's placements on one GPU and
// returns the least rejected, and how many orders there were. For boards with
// few placements only.
func (a *automaton) bestStatic(rate float64) (float64, int) {
	best, tried := 1.0, 0
	orders := make([][]int, len(a.profiles))
	var choose func(i int)
	choose = func(i int) {
		if i == len(a.profiles) {
			tried++
			best = min(best, a.exact(a.static("", orders), rate, 1))
			return
		}
		permute(a.partsOf(i), func(o []int) {
			orders[i] = o
			choose(i + 1)
		})
	}
	choose(0)
	return best, tried
}

// permute calls f with every order of x; f must not keep the slice.
func permute(x []int, f func([]int)) {
	var rec func(n int)
	rec = func(n int) {
		if n == len(x) {
			f(x)
			return
		}
		for i := n; i < len(x); i++ {
			x[n], x[i] = x[i], x[n]
			rec(n + 1)
			x[n], x[i] = x[i], x[n]
		}
	}
	rec(0)
}

// minGain is the least relative gain for which the search changes an order.
const minGain = 1e-4

// searched looks for the best static order: from each way to give every
// profile a side, it swaps placements within profiles as long as that lowers
// the rejections. It starts everywhere because swaps within one profile do not
// lead from one side to the other where only several profiles together gain.
func (a *automaton) searched(name string, rate float64, gpus int) policy {
	var best [][]int
	least := 2.0
	for sides := range 1 << len(a.profiles) {
		orders := make([][]int, len(a.profiles))
		sensible := true
		for i := range orders {
			orders[i] = a.partsOf(i)
			if sides>>i&1 == 1 {
				sensible = sensible && len(orders[i]) > 1
				slices.Reverse(orders[i])
			}
		}
		if !sensible {
			continue
		}
		if r := a.climb(orders, rate, gpus); r < least*(1-minGain) {
			least, best = r, orders
		}
	}
	return a.static(name, best)
}

// climb improves orders in place and returns what they reject.
func (a *automaton) climb(orders [][]int, rate float64, gpus int) float64 {
	least := a.exact(a.static("", orders), rate, gpus)
	for {
		improved := false
		for _, o := range orders {
			for i := range o {
				for j := i + 1; j < len(o); j++ {
					o[i], o[j] = o[j], o[i]
					if r := a.exact(a.static("", orders), rate, gpus); r < least*(1-minGain) {
						least, improved = r, true
						continue
					}
					o[i], o[j] = o[j], o[i]
				}
			}
		}
		if !improved {
			return least
		}
	}
}
