// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/placement"
)

// Names of policies, as the tables show them.
const (
	lowToHigh   = "low to high"
	highToLow   = "high to low"
	fixedSides  = "HAMi: side by profile"
	oursKnown   = "Reslice, known mix"
	oursDefault = "Reslice, default mix"
	searched    = "static order by wide search"
	bestFit     = "best fit, republished"
	bestValue   = "best value, republished"
)

// staticRivals are the fixed orders that others use.
var staticRivals = []string{lowToHigh, highToLow, fixedSides}

// searchedRow is the most GPUs in a row for which the wide search computes
// rejections; more only cost time.
const searchedRow = 4

// policies are what the benchmark compares on nodes of so many GPUs. The first
// is the baseline: the order of NVIDIA's driver.
func (a *automaton) policies(gpus int) []policy {
	out := []policy{
		a.sided(lowToHigh, func(gpu.Profile) bool { return false }),
		a.sided(highToLow, func(gpu.Profile) bool { return true }),
		// HAMi 2.10 gives every profile a side: 1g and 3g the high one.
		a.sided(fixedSides, func(p gpu.Profile) bool { return p.ComputeSlices == 1 || p.ComputeSlices == 3 }),
		a.published(oursKnown, placement.Order(a.model, a.mix)),
		a.published(oursDefault, placement.Order(a.model, placement.DefaultMix(a.model))),
	}
	row := min(gpus, searchedRow)
	return append(out,
		a.searched(searched, a.exactLoad(out[0], row), row),
		a.bestFit(bestFit),
		a.optimum(bestValue, a.exactLoad(out[0], 1)))
}
