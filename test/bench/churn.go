// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"sync"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
)

const (
	// churnGPUs is how many GPUs one node has in the churn benchmark.
	churnGPUs = 4
	// targetRejected is what the baseline rejects at the load that is used.
	targetRejected = 0.10
	// loadSeed is where the seeds for finding the load begin, apart from those
	// of the measurement.
	loadSeed = 1 << 40
	// measureSeed is the first seed of the measurement.
	measureSeed = 1
)

// churnResult is one row: a board and a mix, and how much each policy rejects.
type churnResult struct {
	board, mix, mapped string
	held               durations
	gpus               int
	load               float64 // arrivals in a mean duration
	names              []string
	rejected           [][]float64 // policy, seed
}

func (r churnResult) of(name string) []float64 {
	for i, n := range r.names {
		if n == name {
			return r.rejected[i]
		}
	}
	return nil
}

// against is a policy's rejections relative to the baseline's.
func (r churnResult) against(name string) interval { return ratio(r.of(name), r.rejected[0]) }

// churn compares the policies on some boards and every mix.
func churn(ctx context.Context, o options, boards []string, gpus int, held durations) ([]churnResult, error) {
	var out []churnResult
	for _, id := range boards {
		m, err := models.ByID(id)
		if err != nil {
			return nil, err
		}
		for _, n := range mixes {
			a, mapped, err := n.automatonOn(m)
			if err != nil {
				return nil, err
			}
			r := churnResult{board: id, mix: n.name, mapped: mapped, held: held, gpus: gpus}
			policies := a.policies(gpus)
			r.load = a.findLoad(policies[0], r.gpus, o.arrivals, held)
			r.measure(ctx, a, policies, o)
			out = append(out, r)
			o.progress("churn: %s, %d GPUs, %s, %s durations", id, gpus, n.name, held)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (n namedMix) automatonOn(m *gpu.Model) (*automaton, string, error) {
	mix, mapped := n.on(m)
	a, err := newAutomaton(m, mix)
	return a, mapped, err
}

// findLoad is the rate at which the baseline rejects about targetRejected.
func (a *automaton) findLoad(p policy, gpus, arrivals int, held durations) float64 {
	const seeds = 4
	lo, hi := 0.0, float64(16*gpus)
	for range 14 {
		mid := (lo + hi) / 2
		var sum float64
		for s := range uint64(seeds) {
			w := newWorkload(a.weights, mid, arrivals, held, loadSeed+s)
			sum += a.rejected(w, p, gpus, arrivals/10)
		}
		if sum/seeds > targetRejected {
			hi = mid
		} else {
			lo = mid
		}
	}
	return (lo + hi) / 2
}

// measure plays the same workloads under every policy, one for each seed.
func (r *churnResult) measure(ctx context.Context, a *automaton, policies []policy, o options) {
	for _, p := range policies {
		r.names = append(r.names, p.name)
		r.rejected = append(r.rejected, make([]float64, o.seeds))
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := range next {
				w := newWorkload(a.weights, r.load, o.arrivals, r.held, measureSeed+uint64(s))
				for i, p := range policies {
					r.rejected[i][s] = a.rejected(w, p, r.gpus, o.arrivals/10)
				}
			}
		})
	}
	for s := range o.seeds {
		if ctx.Err() != nil {
			break
		}
		next <- s
	}
	close(next)
	wg.Wait()
}
