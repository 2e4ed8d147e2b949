// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

func row(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

func head(w io.Writer, cells ...string) {
	row(w, cells...)
	row(w, slices.Repeat([]string{"---"}, len(cells))...)
}

func writeAllocator(w io.Writer, o options, names []string, rows []allocatorResult) {
	fmt.Fprintf(w, `
## Allocator: time of one node filter

The scheduler's allocator is asked for one 1g device, exclusively, on one node
of 8 x h100-80gb, offered whole and as MIG devices, while %d allocations exist
on other nodes; the given part of them are shares. Median of %d questions for
each cell. Each question gets a fresh allocator, whose construction counts, as
for the first node that the scheduler filters for a pod. It sorts the slices of
the whole cluster by node, once for each pod: the last column has those of %d
nodes, the others only the one node's. A full GPU holds a 4g and a 3g.

Relative to %q: all placements from low
to high, every engine counted. "Unified" is one device for exclusive use and
shares, so that every allocation is a share, whatever the column says. With
twins, a full GPU is held by shares in the columns of 100 %% shares.

`, elsewhere, o.repetitions, clusterNodes, names[0])
	cells := []string{"layout"}
	for _, r := range rows {
		cells = append(cells, fmt.Sprintf("%s; %d %% shares", r.name, r.shares))
	}
	head(w, cells...)
	for i, n := range names {
		cells := []string{n}
		for _, r := range rows {
			cells = append(cells, fmt.Sprintf("%.2f", r.micros[i]/r.micros[0]))
		}
		row(w, cells...)
	}
	cells = []string{"baseline, ms"}
	for _, r := range rows {
		cells = append(cells, fmt.Sprintf("%.1f", r.micros[0]/1000))
	}
	row(w, cells...)
}

func writeChurn(w io.Writer, o options, main, more []churnResult) {
	fmt.Fprintf(w, `
## Rejected requests under churn

%d GPUs on one node; requests arrive at random, each holds its partition for a
random time and is lost if nothing fits. The load is such that %q,
the order of NVIDIA's driver, rejects about %.0f %% of them. Each of %d seeds
(%d to %d) draws %d requests, the same for every policy; the first tenth is
not counted. Cells are rejections relative to %q, with the 95 %%
confidence interval over seeds. A size that a board lacks becomes the profile
nearest in its part of the memory, as given in brackets.

`, churnGPUs, lowToHigh, targetRejected*100, o.seeds, measureSeed, measureSeed+o.seeds-1, o.arrivals, lowToHigh)
	for _, m := range mixes {
		fmt.Fprintf(w, "- %s: %s\n", m.name, m)
	}
	fmt.Fprintf(w, `
Policies, all of which fill GPU after GPU:

- %q: as in HAMi 2.10, 1g and 3g from the high side,
  others from the low one.
- %q, %q: the order that is published for the
  very mix, or for the default one, whatever the number of GPUs.
- %q: the best order that a search from every side of every
  profile finds for this very load and number of GPUs.
- %q: publishes a new order after each change, what destroys least first.
- %q: the same, by expected rejections computed exactly for one GPU.

`, fixedSides, oursKnown, oursDefault, searched, bestFit, bestValue)
	churnTable(w, main)
	if len(more) > 0 {
		fmt.Fprintf(w, "\nOther sizes of node, and durations with a heavy tail (lognormal, sigma %.1f):\n\n", lognormalSigma)
		churnTable(w, more)
	}
}

func churnTable(w io.Writer, rows []churnResult) {
	head(w, append([]string{"board", "GPUs", "mix", "durations", "rejected by the baseline"}, rows[0].names[1:]...)...)
	for _, r := range rows {
		mix := r.mix
		if r.mapped != "" {
			mix += " (" + r.mapped + ")"
		}
		cells := []string{r.board, fmt.Sprint(r.gpus), mix, string(r.held), fmt.Sprintf("%.1f %%", 100*mean(r.rejected[0]))}
		for _, n := range r.names[1:] {
			i := r.against(n)
			cells = append(cells, fmt.Sprintf("%.3f ± %.3f", i.mid, i.half))
		}
		row(w, cells...)
	}
}

func writeOptimum(w io.Writer, o options, rows []optimumResult) {
	fmt.Fprintf(w, `
## Distance from the optimum on small cases

One GPU, computed exactly: rejections relative to the best policy that takes
whatever fits and does not know the future, which no static order can beat.
Where a board has few placements, every static order was tried. The last two
columns are the requests served of %d sequences of %d, on an empty GPU at %d
times the load, relative to a clairvoyant search that tries every placement.

`, o.sequences, shortArrivals, shortLoad)
	head(w, "board", "mix", lowToHigh, highToLow, fixedSides, oursKnown, searched, bestFit,
		"best of all static orders", "served: "+lowToHigh, "served: "+oursKnown)
	for _, r := range rows {
		static := "not tried"
		if r.tried > 0 {
			static = fmt.Sprintf("%.3f (of %d)", r.bestStatic, r.tried)
		}
		cells := []string{r.board, r.mix}
		for _, n := range []string{lowToHigh, highToLow, fixedSides, oursKnown, searched, bestFit} {
			cells = append(cells, fmt.Sprintf("%.3f", r.of(n)))
		}
		row(w, append(cells, static, fmt.Sprintf("%.4f", r.servedBase), fmt.Sprintf("%.4f", r.servedOurs))...)
	}
}
