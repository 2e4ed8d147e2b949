// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
)

func model(t testing.TB, id string) *gpu.Model {
	t.Helper()
	m, err := models.ByID(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func part(t testing.TB, m *gpu.Model, name string, start int) gpu.Partition {
	t.Helper()
	p, ok := m.ProfileByName(name)
	if !ok {
		t.Fatalf("%s has no profile %s", m.ID, name)
	}
	return gpu.Partition{Profile: p.ID, Placement: gpu.Placement{Start: start, Size: p.MemorySlices}}
}

func TestLayoutRefusesWhatTheSiliconRefuses(t *testing.T) {
	type at struct {
		name  string
		start int
	}
	for name, tc := range map[string]struct {
		model string
		have  []at
		add   at
		want  gpu.RefusalReason // "" if accepted
	}{
		"3g beside 4g":                      {"h100-80gb", []at{{"4g.40gb", 0}}, at{"3g.40gb", 4}, ""},
		"second 4g has no placement":        {"h100-80gb", nil, at{"4g.40gb", 4}, gpu.RefusedPlacement},
		"2g over 1g":                        {"h100-80gb", []at{{"1g.10gb", 1}}, at{"2g.20gb", 0}, gpu.RefusedOverlap},
		"1g cannot use the last slot":       {"h100-80gb", nil, at{"1g.10gb", 7}, gpu.RefusedPlacement},
		"double memory 1g can":              {"h100-80gb", nil, at{"1g.20gb", 6}, ""},
		"one media profile for a GPU":       {"h100-80gb", []at{{"1g.10gb+me", 0}}, at{"1g.10gb+me", 1}, gpu.RefusedMaxInstances},
		"media beside plain":                {"h100-80gb", []at{{"1g.10gb+me", 0}}, at{"1g.10gb", 1}, ""},
		"two sizes of media share one JPEG": {"a30-24gb", []at{{"1g.6gb+me", 0}}, at{"2g.12gb+me", 2}, gpu.RefusedEngines},
		"all media leaves no engines":       {"rtxpro6000-96gb", []at{{"1g.24gb+me.all", 0}}, at{"1g.24gb", 3}, gpu.RefusedEngines},
		"all media leaves -me":              {"rtxpro6000-96gb", []at{{"1g.24gb+me.all", 0}}, at{"1g.24gb-me", 3}, ""},
		"placements are in twelfths":        {"rtxpro6000-96gb", nil, at{"1g.24gb", 1}, gpu.RefusedPlacement},
	} {
		t.Run(name, func(t *testing.T) {
			m := model(t, tc.model)
			l := gpu.NewLayout(m)
			for _, h := range tc.have {
				var err error
				if l, err = l.With(part(t, m, h.name, h.start)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := l.With(part(t, m, tc.add.name, tc.add.start))
			var refused *gpu.RefusedError
			switch {
			case err == nil && tc.want == "":
			case !errors.As(err, &refused) || refused.Reason != tc.want:
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestLayoutOfUnknownProfileOrModelIsRefusedNotPanicked(t *testing.T) {
	p := gpu.Partition{Profile: 99, Placement: gpu.Placement{Start: 0, Size: 1}}
	for _, l := range []gpu.Layout{{}, gpu.NewLayout(model(t, "h100-80gb")), gpu.NewLayout(model(t, "t4-16gb"))} {
		if _, err := l.With(p); err == nil {
			t.Error("accepted")
		}
		_ = l.String()
	}
}

// NVIDIA's guide and the literature count 19 ways to fill an A100 with
// {1g,2g,3g,4g,7g}; with the double-memory 1g there are 78, which are 38
// different sets of sizes.
func TestMaximalLayoutsMatchThePublishedCounts(t *testing.T) {
	full := model(t, "a100-40gb")
	for _, tc := range []struct {
		names          []string
		layouts, bands int
	}{
		{[]string{"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}, 19, 0},
		{[]string{"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}, 78, 38},
	} {
		m := *full
		m.Profiles = nil
		for _, p := range full.Profiles {
			if slices.Contains(tc.names, p.Name) {
				m.Profiles = append(m.Profiles, p)
			}
		}
		maximal, bands := 0, map[string]bool{}
		for _, l := range gpu.Layouts(&m) {
			if slices.ContainsFunc(m.Partitions(), l.Accepts) {
				continue
			}
			maximal++
			var ids []byte
			for _, p := range l.Partitions() {
				ids = append(ids, byte(p.Profile))
			}
			slices.Sort(ids)
			bands[string(ids)] = true
		}
		if maximal != tc.layouts || (tc.bands > 0 && len(bands) != tc.bands) {
			t.Errorf("%v: %d maximal layouts in %d bands, want %d in %d", tc.names, maximal, len(bands), tc.layouts, tc.bands)
		}
	}
}

func TestLayoutLaws(t *testing.T) {
	all := models.All()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(all).Filter((*gpu.Model).HasMIG).Draw(t, "model")
		parts := m.Partitions()
		l := gpu.NewLayout(m)
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			p := rapid.SampledFrom(parts).Draw(t, "partition")
			before := l.Key()
			if l.Has(p) {
				l = l.Without(p)
				continue
			}
			next, err := l.With(p)
			if (err == nil) != l.Accepts(p) {
				t.Fatalf("With and Accepts disagree on %v in %v", p, l)
			}
			if l.Key() != before {
				t.Fatal("With changed its receiver")
			}
			if err != nil {
				continue
			}
			if next.Without(p).Key() != before {
				t.Fatalf("Without does not undo With for %v", p)
			}
			// Taking something away never makes room disappear.
			for _, q := range l.Partitions() {
				smaller := l.Without(q)
				if !smaller.Accepts(p) {
					t.Fatalf("%v fits %v but not without %v", p, l, q)
				}
			}
			l = next
		}
		sum := 0
		for _, p := range l.Partitions() {
			sum += p.Placement.Size
		}
		if sum > m.MemorySlices {
			t.Fatalf("%d memory slices handed out of %d", sum, m.MemorySlices)
		}
	})
}

func TestMPSClientsScaleWithTheInstance(t *testing.T) {
	h100, t4 := model(t, "h100-80gb"), model(t, "t4-16gb")
	for _, tc := range []struct {
		m          *gpu.Model
		cuda, size int
		want       int
	}{
		{h100, 12080, 0, 48}, {h100, 13010, 0, 60}, {h100, 13010, 7, 60},
		{h100, 13010, 1, 8}, {h100, 12080, 3, 20}, {t4, 12080, 0, 48},
		{&gpu.Model{Architecture: "Pascal"}, 12080, 0, 0},
	} {
		if got := tc.m.MPSClients(tc.cuda, tc.size); got != tc.want {
			t.Errorf("%s CUDA %d size %d: %d clients, want %d", tc.m.Architecture, tc.cuda, tc.size, got, tc.want)
		}
	}
}
