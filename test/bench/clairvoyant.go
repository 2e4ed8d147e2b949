// SPDX-License-Identifier: Apache-2.0

package main

const (
	// shortArrivals is how long the sequences are that a clairvoyant search
	// can exhaust.
	shortArrivals = 12
	// shortLoad is their arrival rate relative to the load at which one GPU
	// rejects targetRejected: they begin with an empty GPU.
	shortLoad = 2
	shortSeed = 1 << 41
)

// clairvoyant counts the requests of a short sequence that must be rejected by
// one GPU that takes whatever fits, if it knows the future: every way to place
// the requests is tried.
func (a *automaton) clairvoyant(w workload) int {
	best := len(w.profile) + 1
	placed := make([]int, len(w.profile))
	var play func(event int, state int16, lost int)
	play = func(event int, state int16, lost int) {
		if lost >= best {
			return
		}
		if event == len(w.events) {
			best = lost
			return
		}
		ev := w.events[event]
		if ev < 0 {
			if part := placed[^ev]; part >= 0 {
				state = a.move(state, part)
			}
			play(event+1, state, lost)
			return
		}
		fits := false
		for part, p := range a.parts {
			if p.Profile == a.profiles[w.profile[ev]] && a.fits[state]&(1<<part) != 0 {
				fits = true
				placed[ev] = part
				play(event+1, a.move(state, part), lost)
			}
		}
		if !fits {
			placed[ev] = -1
			play(event+1, state, lost+1)
		}
	}
	play(0, 0, 0)
	return best
}

// served is how many requests of many short sequences the policies and a
// clairvoyant serve, the clairvoyant last.
func (a *automaton) served(policies []policy, load float64, sequences int) []int {
	out := make([]int, len(policies)+1)
	for s := range uint64(sequences) {
		w := newWorkload(a.weights, load, shortArrivals, exponential, shortSeed+s)
		for i, p := range policies {
			out[i] += int(float64(shortArrivals)*(1-a.rejected(w, p, 1, 0)) + 0.5)
		}
		out[len(policies)] += shortArrivals - a.clairvoyant(w)
	}
	return out
}

// optimumResult is one row: a board and a mix on one GPU, everything relative
// to the best there is.
type optimumResult struct {
	board, mix string
	// rejected by each policy, exactly, relative to the best policy that does
	// not know the future.
	names    []string
	rejected []float64
	// bestStatic is the same for the best of all static orders; tried is how
	// many there are, 0 if they were not tried.
	bestStatic float64
	tried      int
	// servedOurs and servedBase are requests of short sequences served,
	// relative to a clairvoyant.
	servedOurs, servedBase float64
}

func (a *automaton) optimumResult(board, mix string, exhaustive bool, sequences int) optimumResult {
	policies := a.policies(1)
	load := a.exactLoad(policies[0], 1)
	best := a.exact(a.optimum("", load), load, 1)
	r := optimumResult{board: board, mix: mix}
	var compared []policy
	for _, p := range policies {
		r.names = append(r.names, p.name)
		r.rejected = append(r.rejected, a.exact(p, load, 1)/best)
		if p.name == oursKnown || p.name == lowToHigh {
			compared = append(compared, p) // the baseline comes first
		}
	}
	if exhaustive {
		r.bestStatic, r.tried = a.bestStatic(load)
		r.bestStatic /= best
	}
	n := a.served(compared, shortLoad*load, sequences)
	r.servedBase, r.servedOurs = float64(n[0])/float64(n[2]), float64(n[1])/float64(n[2])
	return r
}

func (r optimumResult) of(name string) float64 {
	for i, n := range r.names {
		if n == name {
			return r.rejected[i]
		}
	}
	return 0
}
