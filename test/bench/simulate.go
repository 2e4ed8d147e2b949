// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// durations is how long partitions are held, with mean 1.
type durations string

const (
	exponential durations = "exponential"
	// lognormal has a heavy tail: most requests are short, few very long.
	lognormal durations = "lognormal"
)

const lognormalSigma = 1.5

func (d durations) draw(r *rand.Rand) float64 {
	if d == lognormal {
		return math.Exp(lognormalSigma*r.NormFloat64() - lognormalSigma*lognormalSigma/2)
	}
	return r.ExpFloat64()
}

// workload is a sequence of requests, and the order in which they arrive and
// end. It does not depend on the policy, so that policies can be compared pair
// by pair.
type workload struct {
	profile []uint8
	// events holds i for the arrival of request i, ^i for its end.
	events []int32
}

// newWorkload draws requests that arrive at random at this rate.
func newWorkload(weights []float64, rate float64, n int, d durations, seed uint64) workload {
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	type moment struct {
		at float64
		ev int32
	}
	w := workload{profile: make([]uint8, n), events: make([]int32, 2*n)}
	moments := make([]moment, 0, 2*n)
	now := 0.0
	for i := range n {
		now += r.ExpFloat64() / rate
		w.profile[i] = pick(weights, r.Float64())
		moments = append(moments, moment{now, int32(i)}, moment{now + d.draw(r), ^int32(i)})
	}
	slices.SortFunc(moments, func(a, b moment) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return int(a.ev) - int(b.ev)
	})
	for i, m := range moments {
		w.events[i] = m.ev
	}
	return w
}

func pick(weights []float64, u float64) uint8 {
	for i, w := range weights {
		if u < w {
			return uint8(i)
		}
		u -= w
	}
	return uint8(len(weights) - 1)
}

// fleet is a row of equal GPUs, tried in order.
type fleet struct {
	a      *automaton
	states []int16
	where  []place // of each request
}

type place struct{ gpu, part int8 }

func newFleet(a *automaton, gpus, requests int) *fleet {
	f := &fleet{a: a, states: make([]int16, gpus), where: make([]place, requests)}
	for i := range f.where {
		f.where[i].gpu = -1
	}
	return f
}

// arrive places request i by first fit and reports whether it could.
func (f *fleet) arrive(p policy, i int32, profile uint8) bool {
	for g, s := range f.states {
		if part := p.choose[int(s)*len(f.a.profiles)+int(profile)]; part >= 0 {
			f.states[g] = f.a.move(s, int(part))
			f.where[i] = place{int8(g), part}
			return true
		}
	}
	return false
}

// end frees what request i held, if it was placed.
func (f *fleet) end(i int32) {
	if w := f.where[i]; w.gpu >= 0 {
		f.states[w.gpu] = f.a.move(f.states[w.gpu], int(w.part))
		f.where[i].gpu = -1
	}
}

// rejected plays a workload and returns the part of the requests after the
// first warmUp that were rejected.
func (a *automaton) rejected(w workload, p policy, gpus, warmUp int) float64 {
	f := newFleet(a, gpus, len(w.profile))
	lost := 0
	for _, ev := range w.events {
		if ev < 0 {
			f.end(^ev)
			continue
		}
		if !f.arrive(p, ev, w.profile[ev]) && int(ev) >= warmUp {
			lost++
		}
	}
	return float64(lost) / float64(len(w.profile)-warmUp)
}
