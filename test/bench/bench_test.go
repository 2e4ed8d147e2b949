// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reslice.dev/internal/gpu/models"
)

func automatonFor(t *testing.T, board string, n namedMix) *automaton {
	t.Helper()
	m, err := models.ByID(board)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := n.automatonOn(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestASeedDecidesEverything(t *testing.T) {
	a := automatonFor(t, "a30-24gb", mixes[0])
	o := options{seeds: 6, arrivals: 2000, progress: func(string, ...any) {}}
	results := func() []churnResult {
		r, err := churn(context.Background(), o, []string{"a30-24gb"}, 2, exponential)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	x, y := results(), results()
	for i := range x {
		if x[i].load != y[i].load || !slices.EqualFunc(x[i].rejected, y[i].rejected, slices.Equal) {
			t.Errorf("%s: two runs differ", x[i].mix)
		}
		if r := mean(x[i].rejected[0]); math.Abs(r-targetRejected) > 0.02 {
			t.Errorf("%s: the baseline rejects %.3f", x[i].mix, r)
		}
	}
	v, w := newWorkload(a.weights, 3, 500, lognormal, 1), newWorkload(a.weights, 3, 500, lognormal, 2)
	if slices.Equal(v.events, w.events) || slices.Equal(v.profile, w.profile) {
		t.Error("two seeds draw the same requests")
	}
}

func TestTheIntervalCoversTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const trials, n, truth = 2000, 20, 0.8
	covered := 0
	for range trials {
		x, base := make([]float64, n), make([]float64, n)
		for i := range n {
			base[i] = 10 + r.NormFloat64()
			x[i] = truth*base[i] + 0.3*r.NormFloat64()
		}
		if i := ratio(x, base); i.low() <= truth && truth <= i.high() {
			covered++
		}
	}
	if c := float64(covered) / trials; c < 0.93 || c > 0.97 {
		t.Errorf("the 95 %% interval covers in %.3f of the cases", c)
	}
	if i := ratio([]float64{1, 2, 3}, []float64{2, 4, 6}); i.mid != 0.5 || i.half > 1e-12 {
		t.Errorf("an exact ratio: %v", i)
	}
	for freedom, want := range map[float64]float64{1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 30: 2.042, 1000: 1.962} {
		if got := student(freedom); math.Abs(got-want) > 0.01 {
			t.Errorf("t for %v: %.3f, want %.3f", freedom, got, want)
		}
	}
}

// TestSimulationAgreesWithTheExactFigures compares the two ways to count
// rejections on one GPU.
func TestSimulationAgreesWithTheExactFigures(t *testing.T) {
	a := automatonFor(t, "a30-24gb", mixes[3])
	p := a.policies(1)[3]
	load := a.exactLoad(p, 1)
	got := a.rejected(newWorkload(a.weights, load, 400_000, exponential, 5), p, 1, 1000)
	if want := a.exact(p, load, 1); math.Abs(got-want) > 0.003 {
		t.Errorf("simulated %.4f, computed %.4f", got, want)
	}
}

func TestNoPolicyBeatsTheOptimum(t *testing.T) {
	for _, n := range mixes {
		a := automatonFor(t, "a30-24gb", n)
		r := a.optimumResult("a30-24gb", n.name, true, 200)
		for i, v := range r.rejected {
			if v < 1-1e-6 {
				t.Errorf("%s: %s rejects %.6f of the optimum", n.name, r.names[i], v)
			}
		}
		if r.tried == 0 || r.bestStatic < 1-1e-6 || r.bestStatic > r.of(searched)+1e-6 {
			t.Errorf("%s: best of %d static orders %.6f, searched %.6f", n.name, r.tried, r.bestStatic, r.of(searched))
		}
		if r.servedOurs > 1 || r.servedBase > 1 {
			t.Errorf("%s: better than a clairvoyant: %v %v", n.name, r.servedOurs, r.servedBase)
		}
	}
}

func TestMistakesOnTheCommandLineAreExplained(t *testing.T) {
	for args, want := range map[string]string{
		"-only x": "write allocator or churn", "-seeds 1": "at least 2", "x": "takes flags only",
	} {
		var out strings.Builder
		if err := run(context.Background(), strings.Fields(args), &out, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
