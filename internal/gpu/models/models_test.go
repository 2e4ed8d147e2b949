// SPDX-License-Identifier: Apache-2.0

package models

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reslice.dev/internal/gpu"
)

func TestEmbeddedTablesAreValid(t *testing.T) {
	if _, err := Parse(boards); err != nil {
		t.Fatal(err)
	}
	if n := len(All()); n < 13 {
		t.Fatalf("only %d boards", n)
	}
}

func TestUnknownModelNamesTheKnownOnes(t *testing.T) {
	_, err := ByID("h100")
	if err == nil || !strings.Contains(err.Error(), "h100-80gb") {
		t.Fatalf("error does not say what to write: %v", err)
	}
}

// The label's size follows from memory and total (the rule NVIDIA's tools use):
// a typing mistake in a memory figure shows here.
func TestLabelsFollowFromMemory(t *testing.T) {
	var tab table
	if err := json.Unmarshal(boards, &tab); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, b := range tab.Models {
		for _, r := range b.Profiles {
			if r.MemoryMiB == nil {
				continue
			}
			label := strings.TrimSuffix(r.Name, string(gpu.VariantOf(r.Name)))
			_, size, _ := strings.Cut(label, ".")
			want, err := strconv.Atoi(strings.TrimSuffix(size, "gb"))
			if err != nil {
				t.Fatalf("%s %s: %v", b.ID, r.Name, err)
			}
			total := float64(b.TotalGiB)
			frac := math.Ceil(float64(*r.MemoryMiB)/(total*1024)*8) / 8
			if got := int(math.Round(frac * total)); got != want {
				t.Errorf("%s %s: %d MiB would be called %dgb", b.ID, r.Name, *r.MemoryMiB, got)
			}
			checked++
		}
	}
	if checked < 60 {
		t.Errorf("only %d rows checked", checked)
	}
}

func TestRowsWithoutMemoryAreLeftOutAndEstimatesMarked(t *testing.T) {
	b300, err := ByID("b300-269gb")
	if err != nil {
		t.Fatal(err)
	}
	if len(b300.Profiles) != 0 || b300.HasMIG() {
		t.Errorf("B300 offers profiles nobody has seen: %v", b300.Profiles)
	}
	gh200, _ := ByID("gh200-144gb")
	for _, p := range gh200.Profiles {
		if want := p.MemorySlices >= 4; p.Estimated != want {
			t.Errorf("%s: estimated = %v", p.Name, p.Estimated)
		}
	}
}

// TestTablesMatchTheSourceData compares with the collected figures, where they
// are at hand beside the checkout.
func TestTablesMatchTheSourceData(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "mig-profiles.json"))
	if err != nil {
		t.Skip("source figures are not beside this checkout")
	}
	var src struct {
		Models []struct {
			ID            string      `json:"id"`
			MemorySlots   int         `json:"memory_slots"`
			ComputeSlices int         `json:"compute_slices"`
			Profiles      []sourceRow `json:"profiles"`
		} `json:"models"`
	}
	if err := json.Unmarshal(raw, &src); err != nil {
		t.Fatal(err)
	}
	for _, b := range src.Models {
		m, err := ByID(b.ID)
		if err != nil {
			t.Error(err)
			continue
		}
		if m.MemorySlices != b.MemorySlots || m.ComputeSlices != b.ComputeSlices {
			t.Errorf("%s: %d memory and %d compute slices", b.ID, m.MemorySlices, m.ComputeSlices)
		}
		for _, r := range b.Profiles {
			p, ok := m.Profile(gpu.ProfileID(r.ID))
			switch {
			case ok != (r.MemoryMiB != nil || r.Estimate != nil):
				t.Errorf("%s %s: in the table %v", b.ID, r.Name, ok)
			case ok && !r.agrees(p):
				t.Errorf("%s %s differs: %+v", b.ID, r.Name, p)
			}
		}
	}
}

// sourceRow is a profile in the collected figures; null is unknown.
type sourceRow struct {
	Name          string          `json:"name"`
	ID            int             `json:"gi_profile_id"`
	Kind          int             `json:"nvml_profile_enum"`
	ComputeSlices int             `json:"compute_slices"`
	MemorySlices  int             `json:"memory_slices"`
	Max           int             `json:"max_instances"`
	MemoryMiB     *int64          `json:"memory_mib"`
	SM            *int            `json:"sm_count"`
	Copy          *int            `json:"copy_engines"`
	Decoders      *int            `json:"decoders"`
	Encoders      *int            `json:"encoders"`
	JPEG          *int            `json:"jpeg"`
	OFA           *int            `json:"ofa"`
	Placements    []gpu.Placement `json:"placements"`
	Estimate      map[string]int  `json:"estimate"`
}

func (r sourceRow) agrees(p gpu.Profile) bool {
	same := func(have int, seen *int, estimate string) bool {
		if seen == nil {
			guess, ok := r.Estimate[estimate]
			return (ok && have == guess) || (!ok && have == gpu.Unknown)
		}
		return have == *seen
	}
	memory := p.MemoryBytes == int64(r.Estimate["memory_mib"])*mib
	if r.MemoryMiB != nil {
		memory = p.MemoryBytes == *r.MemoryMiB*mib
	}
	e := p.Engines
	return memory && p.Name == r.Name && p.Kind == r.Kind && p.Estimated == (r.Estimate != nil) &&
		p.ComputeSlices == r.ComputeSlices && p.MemorySlices == r.MemorySlices && p.MaxInstances == r.Max &&
		slices.Equal(p.Placements, r.Placements) && same(p.Multiprocessors, r.SM, "sm_count") &&
		same(e.Copy, r.Copy, "copy_engines") && same(e.Decoder, r.Decoders, "decoders") &&
		same(e.Encoder, r.Encoders, "encoders") && same(e.JPEG, r.JPEG, "jpeg") && same(e.OFA, r.OFA, "ofa")
}

func FuzzParse(f *testing.F) {
	f.Add(boards)
	f.Add([]byte(`{"models":[{"id":"x","memorySlices":8,"computeSlices":7,"profiles":[{"name":"1g","id":1,"max":1,"memorySlices":1,"computeSlices":1,"memoryMiB":1,"starts":[0]}]}]}`))
	f.Add([]byte(`{"models":[{}]}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		models, err := Parse(data)
		if err != nil {
			return
		}
		for _, m := range models {
			if err := m.Validate(); err != nil {
				t.Fatalf("accepted an invalid model: %v", err)
			}
			l := gpu.NewLayout(m)
			for _, p := range m.Partitions() {
				if next, err := l.With(p); err == nil {
					l = next
				}
			}
			_ = l.String()
		}
	})
}
