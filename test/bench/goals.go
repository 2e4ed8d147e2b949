// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// goal is what a figure must reach.
type goal struct {
	text string
	met  bool
	// found is the figure, and where it is worst.
	found string
}

func writeGoals(w io.Writer, goals []goal) {
	fmt.Fprintf(w, "\n## Goals\n\n")
	head(w, "goal", "", "found")
	for _, g := range goals {
		met := "**not met**"
		if g.met {
			met = "met"
		}
		row(w, g.text, met, g.found)
	}
}

// worst collects a figure over cases and keeps the highest.
type worst struct {
	value float64
	where string
}

func (x *worst) add(v float64, where string) {
	if x.where == "" || v > x.value {
		x.value, x.where = v, where
	}
}

func (x *worst) String() string { return fmt.Sprintf("%.2f (%s)", x.value, x.where) }

// otherRows names the rows beside the main ones.
const otherRows = "other sizes of node and lognormal durations"

const (
	goalNoShares  = 1.2
	goalAllShares = 1.0 / 3
	goalMean      = 0.95
	goalOptimum   = 0.03
)

func allocatorGoals(names []string, rows []allocatorResult) []goal {
	at := func(r allocatorResult, name string) float64 { return r.micros[slices.Index(names, name)] }
	var out []goal
	for _, name := range []string{layoutNone, layoutGPU, layoutAll} {
		var x worst
		for _, r := range rows {
			if r.shares == 0 && r.nodes == 1 {
				x.add(at(r, name)/at(r, layoutNVIDIA), r.name)
			}
		}
		out = append(out, goal{fmt.Sprintf("node filter, %q: at most %.1f x the baseline at 0 %% shares", name, goalNoShares), x.value <= goalNoShares, x.String()})
	}
	for _, r := range rows {
		if r.shares == 100 && r.full < benchGPUs {
			v := at(r, layoutAll) / at(r, layoutTwinsNode)
			out = append(out, goal{fmt.Sprintf("node filter, %q: at most 1/3 of %q at 100 %% shares, %s", layoutAll, layoutTwinsNode, r.name), v <= goalAllShares, fmt.Sprintf("%.2f", v)})
		}
	}
	return out
}

// rivalGoals compares pairwise: ours is worse than a rival only where the
// whole confidence interval of the ratio is above 1.
func rivalGoals(rows []churnResult, where string) []goal {
	var out []goal
	for _, rivals := range [][]string{staticRivals, {searched}} {
		var bad []string
		var x worst
		for _, r := range rows {
			for _, n := range rivals {
				i := ratio(r.of(oursKnown), r.of(n))
				x.add(i.mid, fmt.Sprintf("%s, %d GPUs, %s, %s", r.board, r.gpus, r.mix, n))
				if i.low() > 1 {
					bad = append(bad, fmt.Sprintf("%s, %d GPUs, %s, %s: %.3f ± %.3f of %s", r.board, r.gpus, r.mix, r.held, i.mid, i.half, n))
				}
			}
		}
		found := fmt.Sprintf("at most %.3f (%s)", x.value, x.where)
		if len(bad) > 0 {
			found = strings.Join(bad, "; ")
		}
		out = append(out, goal{fmt.Sprintf("rejections, known mix, %s: nowhere above %s by more than the confidence interval", where, strings.Join(rivals, ", ")), len(bad) == 0, found})
	}
	return out
}

func meanGoals(rows []churnResult) []goal {
	var out []goal
	for _, ours := range []string{oursKnown, oursDefault} {
		for _, board := range boards {
			var ratios []float64
			for _, r := range rows {
				if r.board == board {
					ratios = append(ratios, r.against(ours).mid)
				}
			}
			m := mean(ratios)
			out = append(out, goal{fmt.Sprintf("rejections, %s, %s: at most %.2f of %q on average over the mixes", ours, board, goalMean, lowToHigh), m <= goalMean, fmt.Sprintf("%.3f", m)})
		}
	}
	return out
}

// defaultGoal asks that a node that knows nothing of its requests is no worse
// off than with the order of NVIDIA's driver.
func defaultGoal(rows []churnResult, where string) goal {
	var bad []string
	var x worst
	for _, r := range rows {
		i := r.against(oursDefault)
		x.add(i.mid, fmt.Sprintf("%s, %d GPUs, %s", r.board, r.gpus, r.mix))
		if i.low() > 1 {
			bad = append(bad, fmt.Sprintf("%s, %d GPUs, %s, %s: %.3f ± %.3f", r.board, r.gpus, r.mix, r.held, i.mid, i.half))
		}
	}
	found := fmt.Sprintf("at most %.3f (%s)", x.value, x.where)
	if len(bad) > 0 {
		found = strings.Join(bad, "; ")
	}
	return goal{fmt.Sprintf("rejections, default mix, %s: nowhere above %q by more than the confidence interval", where, lowToHigh), len(bad) == 0, found}
}

func optimumGoals(rows []optimumResult) []goal {
	var static, online, short worst
	for _, r := range rows {
		where := r.board + ", " + r.mix
		if r.tried > 0 {
			static.add(r.of(oursKnown)/r.bestStatic-1, where)
		}
		online.add(r.of(oursKnown)-1, where)
		short.add(1-r.servedOurs, where)
	}
	var out []goal
	for _, g := range []struct {
		text string
		worst
	}{
		{"rejections on one GPU within 3 % of the best of all static orders, where all were tried", static},
		{"rejections on one GPU within 3 % of the best policy that does not know the future", online},
		{"requests served of short sequences within 3 % of a clairvoyant", short},
	} {
		out = append(out, goal{g.text, g.value <= goalOptimum, fmt.Sprintf("%.1f %% (%s)", 100*g.value, g.where)})
	}
	return out
}
