// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/placement"
)

// automaton is one GPU as a finite machine: its states are the layouts that
// the partitions of a mix can form, by the law of gpu.Layout. Simulating
// requests is then looking up a table, some hundred times faster than asking
// the allocator; a test proves that both decide the same.
type automaton struct {
	model    *gpu.Model
	mix      placement.Mix
	profiles []gpu.ProfileID
	weights  []float64 // of each profile, in sum 1
	parts    []gpu.Partition
	layouts  []gpu.Layout
	fits     []uint64 // of each state: the parts that can be added
	// toggle leads from a state and a part to the state with the part added,
	// or taken away if it was there; -1 where it does not fit.
	toggle []int16
	held   [][]int // of each state: the parts that are taken
}

func newAutomaton(m *gpu.Model, mix placement.Mix) (*automaton, error) {
	a := &automaton{model: m, mix: mix}
	sum := 0.0
	for _, w := range mix {
		sum += w.Value
	}
	for _, w := range mix {
		p, ok := m.Profile(w.Profile)
		if !ok {
			return nil, fmt.Errorf("%s has no profile %d", m.ID, w.Profile)
		}
		a.profiles, a.weights = append(a.profiles, p.ID), append(a.weights, w.Value/sum)
		for _, pl := range p.Placements {
			a.parts = append(a.parts, gpu.Partition{Profile: p.ID, Placement: pl})
		}
	}
	if len(a.parts) > 64 {
		return nil, fmt.Errorf("%s: %d partitions, at most 64 are simulated", m.ID, len(a.parts))
	}
	return a, a.enumerate()
}

// enumerate visits every layout once, the empty one first.
func (a *automaton) enumerate() error {
	index := map[string]int16{}
	at := func(l gpu.Layout) int16 {
		i, ok := index[l.Key()]
		if !ok {
			i = int16(len(a.layouts))
			index[l.Key()] = i
			a.layouts = append(a.layouts, l)
		}
		return i
	}
	at(gpu.NewLayout(a.model))
	for n := 0; n < len(a.layouts); n++ {
		if n > 1<<14 {
			return fmt.Errorf("%s: too many layouts", a.model.ID)
		}
		l := a.layouts[n]
		var fits uint64
		var held []int
		for i, p := range a.parts {
			if l.Has(p) {
				held = append(held, i)
				a.toggle = append(a.toggle, at(l.Without(p)))
				continue
			}
			next, err := l.With(p)
			if err != nil {
				a.toggle = append(a.toggle, -1)
				continue
			}
			fits |= 1 << i
			a.toggle = append(a.toggle, at(next))
		}
		a.fits, a.held = append(a.fits, fits), append(a.held, held)
	}
	return nil
}

func (a *automaton) move(state int16, part int) int16 { return a.toggle[int(state)*len(a.parts)+part] }

// partsOf lists the parts of a profile, by ascending start.
func (a *automaton) partsOf(profile int) []int {
	var out []int
	for i, p := range a.parts {
		if p.Profile == a.profiles[profile] {
			out = append(out, i)
		}
	}
	return out
}

// policy says where a GPU in a state puts a request of a profile: a part, or
// -1. GPUs are tried in order, as the scheduler tries pools.
type policy struct {
	name   string
	choose []int8 // state * profiles + profile
}

// static is a policy that tries the parts of each profile in one order.
func (a *automaton) static(name string, orders [][]int) policy {
	return a.policyOf(name, func(state, profile int) int {
		for _, part := range orders[profile] {
			if a.fits[state]&(1<<part) != 0 {
				return part
			}
		}
		return -1
	})
}

func (a *automaton) policyOf(name string, choose func(state, profile int) int) policy {
	p := policy{name: name}
	for s := range a.layouts {
		for i := range a.profiles {
			p.choose = append(p.choose, int8(choose(s, i)))
		}
	}
	return p
}

// published is the policy of a list of partitions in the order of publication.
func (a *automaton) published(name string, order []gpu.Partition) policy {
	orders := make([][]int, len(a.profiles))
	for _, p := range order {
		if i := slices.Index(a.profiles, p.Profile); i >= 0 {
			orders[i] = append(orders[i], slices.Index(a.parts, p))
		}
	}
	return a.static(name, orders)
}

// sided puts each profile at one side: low to high, or high to low.
func (a *automaton) sided(name string, high func(gpu.Profile) bool) policy {
	orders := make([][]int, len(a.profiles))
	for i, id := range a.profiles {
		orders[i] = a.partsOf(i)
		if p, _ := a.model.Profile(id); high(p) {
			slices.Reverse(orders[i])
		}
	}
	return a.static(name, orders)
}

// bestFit chooses what destroys least in the layout of the moment: what a
// driver would achieve that publishes a new order after each change.
func (a *automaton) bestFit(name string) policy {
	return a.policyOf(name, func(state, profile int) int {
		p, ok := placement.BestFit(a.layouts[state], a.profiles[profile], a.mix)
		if !ok {
			return -1
		}
		return slices.Index(a.parts, p)
	})
}
