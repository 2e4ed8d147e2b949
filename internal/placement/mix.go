// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"fmt"
	"maps"
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
// a GPU, so it fits any model: by compute slices, 55 for the smallest size, 25
// for the next, then 12, 4 and 4, over the plain profiles in order of size. Of
// the mixes tried, its order does best on average where the real mix is another.
func DefaultMix(m *gpu.Model) Mix {
	weights := []float64{55, 25, 12, 4, 4}
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
// is a profile's label ("1g.20gb"), the part of it before the dot ("1g": the
// plain profile of that many compute slices with the least memory) or "whole".
// Weights are relative to one another, each from 0 to 1e9, at least one above 0;
// entries that mean the same profile add up. The result is normalized.
func ParseMix(m *gpu.Model, s string) (Mix, error) {
	mixes, err := ParseMixes([]*gpu.Model{m}, s)
	return mixes[m], err
}

// ParseMixes reads one mix for several models, as [ParseMix] does for one. An
// entry counts for the models that have the size; one that none has is a
// mistake. A model for which nothing weighs is left out.
func ParseMixes(models []*gpu.Model, s string) (map[*gpu.Model]Mix, error) {
	out := map[*gpu.Model]Mix{}
	for entry := range strings.SplitSeq(s, ",") {
		var mistake error
		fits := false
		for _, m := range models {
			w, err := parseEntry(m, entry)
			if err != nil {
				mistake = cmp.Or(mistake, err)
				continue
			}
			fits = true
			out[m] = append(out[m], w)
		}
		if !fits {
			return nil, mistake
		}
	}
	for m, mix := range out {
		out[m] = mix.Normalized()
	}
	maps.DeleteFunc(out, func(_ *gpu.Model, mix Mix) bool { return len(mix) == 0 })
	if len(out) == 0 {
		return nil, fmt.Errorf("mix %q: at least one weight must be above 0", s)
	}
	return out, nil
}

// parseEntry reads one "profile=weight" of a mix for a model.
func parseEntry(m *gpu.Model, entry string) (Weight, error) {
	key, value, ok := strings.Cut(entry, "=")
	if !ok {
		return Weight{}, fmt.Errorf("mix entry %q: write profile=weight, with a comma between two, for example 1g=50,2g=30,whole=20", entry)
	}
	p, err := profileForKey(m, strings.TrimSpace(key))
	if err != nil {
		return Weight{}, err
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || !(v >= 0 && v <= maxWeight) {
		return Weight{}, fmt.Errorf("mix entry %q: the weight must be a number from 0 to %g, such as 20", entry, float64(maxWeight))
	}
	return Weight{p.ID, v}, nil
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

// Normalized returns one weight for each profile, as parts of their sum, in the
// order of first mention, without those that are not above 0. It is empty for a
// mix that weighs nothing.
func (x Mix) Normalized() Mix {
	top := 0.0
	for _, w := range x {
		if w.Value > top && !math.IsInf(w.Value, 0) {
			top = w.Value
		}
	}
	sum := 0.0
	var out Mix
	for _, w := range x {
		if !(w.Value > 0 && w.Value <= top) {
			continue
		}
		part := w.Value / top // at most 1: sums stay finite
		sum += part
		if i := slices.IndexFunc(out, func(o Weight) bool { return o.Profile == w.Profile }); i >= 0 {
			out[i].Value += part
			continue
		}
		out = append(out, Weight{w.Profile, part})
	}
	for i := range out {
		out[i].Value /= sum
	}
	return out
}

// share is the weight of a profile in a normalized mix, 0 if absent.
func (x Mix) share(id gpu.ProfileID) float64 {
	for _, w := range x {
		if w.Profile == id {
			return w.Value
		}
	}
	return 0
}
