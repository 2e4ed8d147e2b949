// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/placement"
)

// size is one size of request, in the words of a board with seven compute
// slices.
type size struct {
	label string
	// eighths is the part of the GPU's memory that it takes there.
	eighths int
	weight  float64
}

type namedMix struct {
	name  string
	sizes []size
}

var mixes = []namedMix{
	{"uniform", []size{{"1g", 1, 20}, {"2g", 2, 20}, {"3g", 4, 20}, {"4g", 4, 20}, {"7g", 8, 20}}},
	{"small", []size{{"1g", 1, 70}, {"2g", 2, 20}, {"3g", 4, 5}, {"4g", 4, 5}}},
	{"bimodal", []size{{"1g", 1, 60}, {"4g", 4, 20}, {"7g", 8, 20}}},
	{"inference", []size{{"1g", 1, 50}, {"2g", 2, 30}, {"3g", 4, 15}, {"7g", 8, 5}}},
}

var boards = []string{"h100-80gb", "a30-24gb"}

// on translates the mix to a board: a size keeps its label where the board has
// it, else it becomes the profile nearest in its part of the memory, the
// larger of two. The text lists what was translated.
func (n namedMix) on(m *gpu.Model) (placement.Mix, string) {
	var mix placement.Mix
	var mapped []string
	for _, s := range n.sizes {
		p := nearest(m, s)
		if label, _, _ := strings.Cut(p.Name, "."); label != s.label {
			mapped = append(mapped, fmt.Sprintf("%s as %s", s.label, label))
		}
		mix = addWeight(mix, p.ID, s.weight)
	}
	return mix, strings.Join(mapped, ", ")
}

func addWeight(mix placement.Mix, id gpu.ProfileID, v float64) placement.Mix {
	for i := range mix {
		if mix[i].Profile == id {
			mix[i].Value += v
			return mix
		}
	}
	return append(mix, placement.Weight{Profile: id, Value: v})
}

func nearest(m *gpu.Model, s size) gpu.Profile {
	var best gpu.Profile
	distance := 0
	for _, p := range m.Profiles {
		if p.Variant != gpu.VariantPlain {
			continue
		}
		if label, _, _ := strings.Cut(p.Name, "."); label == s.label {
			return p
		}
		d := p.MemorySlices*8 - s.eighths*m.MemorySlices
		d = max(d, -d)
		if best.Name == "" || d <= distance {
			best, distance = p, d
		}
	}
	return best
}

func (n namedMix) String() string {
	var parts []string
	for _, s := range n.sizes {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", s.label, s.weight))
	}
	return strings.Join(parts, ", ")
}
