// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reslice.dev/internal/gpu"
)

// Weight is how often a profile is asked for, relative to the others.
type Weight struct {
	Profile gpu.ProfileID
	// Value is at least 0 and finite; only ratios matter.
	Value float64
}

// Mix is the expected mix of requests on GPUs of one model.
type Mix []Weight

// maxWeight keeps sums of weights far from the end of the number range.
const maxWeight = 1e9

// whole is how a mix names the profile that covers the GPU, whatever its size.
const whole = "whole"

// DefaultMix is the mix for which Reslice orders placements while it knows
// nothing of a node's requests: mostly small, as inference is, with enough
// large ones that their few placements are kept free. It is stated in parts of
// a GPU, so it fits any model: by compute slices, 50 for the smallest size, 27
// for the next, then 13, 5 and 5, over the plain profiles in order of size. Of
// the mixes tried, its order does best on average where the real mix is another.
func DefaultMix(m *gpu.Model) Mix {
	weights := []float64{50, 27, 13, 5, 5}
	var mix Mix
	last := 0
	for _, p := range m.Profiles {
		if p.Variant != gpu.VariantPlain || p.ComputeSlices <= last {
			continue
		}
		last = p.ComputeSlices
		mix = append(mix, Weight{p.ID, weights[min(len(mix), len(weights)-1)]})
	}
	return mix
}

// ParseMix reads a mix as people write it: "1g=50,2g=30,3g=15,whole=5". A key
// is a profile's label ("1g.20gb"), the beginning of it ("1g": the plain
// profile of that many compute slices with the least memory) or "whole".
func ParseMix(m *gpu.Model, s string) (Mix, error) {
	var mix Mix
	sum := 0.0
	for entry := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(entry), "=")
		if !ok {
			return nil, fmt.Errorf("mix entry %q: write profile=weight, for example 1g=50,2g=30,whole=20", entry)
		}
		p, err := profileForKey(m, key)
		if err != nil {
			return nil, err
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 0 && v <= maxWeight) {
			return nil, fmt.Errorf("mix entry %q: the weight must be a number from 0 to %g", entry, float64(maxWeight))
		}
		if slices.ContainsFunc(mix, func(w Weight) bool { return w.Profile == p.ID }) {
			return nil, fmt.Errorf("mix entry %q: profile %s is given twice", entry, p.Name)
		}
		mix = append(mix, Weight{p.ID, v})
		sum += v
	}
	if sum == 0 {
		return nil, fmt.Errorf("mix %q: at least one weight must be above 0", s)
	}
	return mix, nil
}

func profileForKey(m *gpu.Model, key string) (gpu.Profile, error) {
	if key == whole {
		if p, ok := m.Whole(); ok {
			return p, nil
		}
	}
	if p, ok := m.ProfileByName(key); ok {
		return p, nil
	}
	var known []string
	for _, p := range m.Profiles { // in order of size: the first is the smallest
		label, _, _ := strings.Cut(p.Name, ".")
		if p.Variant == gpu.VariantPlain && label == key {
			return p, nil
		}
		known = append(known, p.Name)
	}
	if len(known) == 0 {
		return gpu.Profile{}, fmt.Errorf("mix entry %q: %s has no MIG profiles", key, m.ID)
	}
	return gpu.Profile{}, fmt.Errorf("mix entry %q: %s has no such profile, write whole or one of %s", key, m.ID, strings.Join(known, ", "))
}

// share is the weight of a profile as a part of the whole mix, 0 if absent.
func (x Mix) share(id gpu.ProfileID) float64 {
	sum, own := 0.0, 0.0
	for _, w := range x {
		if !(w.Value > 0) || math.IsInf(w.Value, 0) {
			continue
		}
		sum += w.Value
		if w.Profile == id {
			own += w.Value
		}
	}
	if sum == 0 {
		return 0
	}
	return own / sum
}
