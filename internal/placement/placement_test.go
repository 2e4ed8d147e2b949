// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
	"reslice.dev/internal/placement"
)

func withMIG() []*gpu.Model {
	return slices.DeleteFunc(models.All(), func(m *gpu.Model) bool { return !m.HasMIG() })
}

// TestGoldenOrders pins the published order of boards under several mixes and
// the room that layouts leave; run with -rewrite and read the diff.
func TestGoldenOrders(t *testing.T) {
	datadriven.RunTest(t, "testdata/placement", func(t *testing.T, d *datadriven.TestData) string {
		var id string
		d.ScanArgs(t, "model", &id)
		m, err := models.ByID(id)
		if err != nil {
			return err.Error() + "\n"
		}
		mix := placement.DefaultMix(m)
		if s := strings.TrimSpace(d.Input); s != "" && d.Cmd == "order" {
			if mix, err = placement.ParseMix(m, s); err != nil {
				return err.Error() + "\n"
			}
		}
		if d.Cmd == "order" {
			return drawOrder(m, placement.Order(m, mix))
		}
		return drawRoom(m, mix, d.Input)
	})
}

func drawOrder(m *gpu.Model, order []gpu.Partition) string {
	var b strings.Builder
	for _, p := range m.Profiles {
		fmt.Fprintf(&b, "%-12s", p.Name)
		for _, q := range order {
			if q.Profile == p.ID {
				fmt.Fprintf(&b, " %d", q.Placement.Start)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// drawRoom builds a layout from lines "profile start" and says what is left.
func drawRoom(m *gpu.Model, mix placement.Mix, input string) string {
	l := gpu.NewLayout(m)
	for line := range strings.Lines(input) {
		var name string
		var start int
		if _, err := fmt.Sscan(line, &name, &start); err != nil {
			return err.Error() + "\n"
		}
		p, _ := m.ProfileByName(name)
		next, err := l.With(gpu.Partition{Profile: p.ID, Placement: gpu.Placement{Start: start, Size: p.MemorySlices}})
		if err != nil {
			return err.Error() + "\n"
		}
		l = next
	}
	out := fmt.Sprintf("%v fragmentation %.2f\n", l, placement.Fragmentation(l, mix))
	for _, p := range m.Profiles {
		if p.Variant == gpu.VariantPlain {
			best, ok := placement.BestFit(l, p.ID, mix)
			out += fmt.Sprintf("%s fits %v", p.Name, placement.Fits(l, p.ID))
			if ok {
				out += fmt.Sprintf(", best at %d", best.Placement.Start)
			}
			out += "\n"
		}
	}
	return out
}

// TestEveryPlacementHoldsEverySmallerProfile is what makes "smallest first"
// right: a GPU that could give a bigger profile could always have given a
// smaller one, so going GPU by GPU never hands out more than is needed. It
// holds for geometry; exhausted engines are the exception, so plain profiles
// are compared.
func TestEveryPlacementHoldsEverySmallerProfile(t *testing.T) {
	for _, m := range withMIG() {
		for _, p := range m.Profiles {
			for _, q := range m.Profiles {
				if q.MemorySlices > p.MemorySlices || q.ComputeSlices > p.ComputeSlices {
					continue
				}
				for _, at := range p.Placements {
					if !slices.ContainsFunc(q.Placements, at.Contains) {
						t.Errorf("%s: %s at %v has no place for %s", m.ID, p.Name, at, q.Name)
					}
				}
			}
		}
	}
}

// TestTheLemmaHoldsInEveryLayout is the same, in use: wherever a bigger plain
// profile fits into a layout, a smaller one fits too.
func TestTheLemmaHoldsInEveryLayout(t *testing.T) {
	for _, m := range withMIG() {
		for _, l := range gpu.Layouts(m) {
			for _, p := range m.Profiles {
				if p.Variant != gpu.VariantPlain || len(placement.Fits(l, p.ID)) == 0 {
					continue
				}
				for _, q := range m.Profiles {
					smaller := q.MemorySlices <= p.MemorySlices && q.ComputeSlices <= p.ComputeSlices
					if q.Variant == gpu.VariantPlain && smaller && len(placement.Fits(l, q.ID)) == 0 {
						t.Fatalf("%s: %v takes %s but not %s", m.ID, l, p.Name, q.Name)
					}
				}
			}
		}
	}
}

func drawMix(t *rapid.T, m *gpu.Model) placement.Mix {
	var mix placement.Mix
	for _, p := range m.Profiles {
		if rapid.Bool().Draw(t, p.Name) {
			mix = append(mix, placement.Weight{Profile: p.ID, Value: rapid.Float64Range(0, 100).Draw(t, "weight")})
		}
	}
	return mix
}

func TestAnOrderListsEveryPartitionOnceSmallestProfileFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(models.All()).Draw(t, "model")
		if m.MemorySlices == 8 && rapid.IntRange(0, 19).Draw(t, "skip most of the large boards") > 0 {
			m, _ = models.ByID("a30-24gb")
		}
		mix := drawMix(t, m)
		order := placement.Order(m, mix)
		if !slices.IsSortedFunc(order, func(a, b gpu.Partition) int {
			p, _ := m.Profile(a.Profile)
			q, _ := m.Profile(b.Profile)
			return gpu.CompareProfiles(p, q)
		}) {
			t.Fatal("a bigger profile comes first")
		}
		got, want := slices.Clone(order), m.Partitions()
		slices.SortFunc(got, gpu.ComparePartitions)
		slices.SortFunc(want, gpu.ComparePartitions)
		if !slices.Equal(got, want) {
			t.Fatalf("%d partitions of %d", len(got), len(want))
		}
		// Only ratios of weights matter.
		scaled := slices.Clone(mix)
		for i := range scaled {
			scaled[i].Value *= 4
		}
		if !slices.Equal(order, placement.Order(m, scaled)) {
			t.Fatal("scaling the mix changed the order")
		}
	})
}

func TestFitsRoomAndFragmentationAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(withMIG()).Draw(t, "model")
		mix := drawMix(t, m)
		l := gpu.NewLayout(m)
		for range rapid.IntRange(0, 7).Draw(t, "partitions") {
			if next, err := l.With(rapid.SampledFrom(m.Partitions()).Draw(t, "partition")); err == nil {
				l = next
			}
		}
		f := placement.Fragmentation(l, mix)
		if math.IsNaN(f) || f < 0 || f > 1 {
			t.Fatalf("fragmentation %v", f)
		}
		if l.Len() == 0 && f != 0 {
			t.Fatalf("an empty GPU is fragmented: %v", f)
		}
		for _, p := range m.Profiles {
			fits, room := placement.Fits(l, p.ID), placement.Room(l, p.ID)
			if (len(fits) == 0) != (room == 0) || room > len(fits) {
				t.Fatalf("%s: %d fits, room for %d", p.Name, len(fits), room)
			}
			best, ok := placement.BestFit(l, p.ID, mix)
			if ok != (room > 0) || (ok && !slices.Contains(fits, best.Placement)) {
				t.Fatalf("%s: best %v is not one of %v", p.Name, best, fits)
			}
		}
	})
}

func TestAMixIsReadAsPeopleWriteIt(t *testing.T) {
	h100, _ := models.ByID("h100-80gb")
	mix, err := placement.ParseMix(h100, "1g=50, 1g.20gb=5,whole=10")
	if err != nil || len(mix) != 3 || mix[0].Profile != 19 || mix[1].Profile != 15 || mix[2].Profile != 0 {
		t.Fatalf("%v %v", mix, err)
	}
	if mix, err := placement.ParseMix(h100, "whole=1,7g=2"); err != nil || len(mix) != 1 {
		t.Errorf("two names of one profile: %v %v", mix, err)
	}
	for in, want := range map[string]string{
		"1g": "profile=weight", "1g=x": "must be a number", "1g=-1": "must be a number", "1g=NaN": "must be a number", "1g=1e308": "must be a number", "1g=0": "above 0",
		"5g=1": "1g.10gb", "1g=5,": "comma between", "": "profile=weight",
	} {
		if _, err := placement.ParseMix(h100, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", in, err, want)
		}
	}
	t4, _ := models.ByID("t4-16gb")
	if _, err := placement.ParseMix(t4, "1g=1"); err == nil || !strings.Contains(err.Error(), "no MIG") {
		t.Errorf("T4: %v", err)
	}
}
