// SPDX-License-Identifier: Apache-2.0

package models

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
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
			ID       string `json:"id"`
			Profiles []struct {
				Name       string `json:"name"`
				ID         int    `json:"gi_profile_id"`
				MemoryMiB  *int64 `json:"memory_mib"`
				SM         *int   `json:"sm_count"`
				Decoders   *int   `json:"decoders"`
				Placements []gpu.Placement
			} `json:"profiles"`
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
		for _, r := range b.Profiles {
			p, ok := m.Profile(gpu.ProfileID(r.ID))
			if !ok {
				if r.MemoryMiB != nil {
					t.Errorf("%s %s is missing", b.ID, r.Name)
				}
				continue
			}
			if p.Name != r.Name || (r.MemoryMiB != nil && p.MemoryBytes != *r.MemoryMiB*mib) ||
				(r.SM != nil && p.Multiprocessors != *r.SM) || (r.Decoders != nil && p.Engines.Decoder != *r.Decoders) {
				t.Errorf("%s %s differs: %+v", b.ID, r.Name, p)
			}
			if len(p.Placements) != len(r.Placements) {
				t.Errorf("%s %s: %d placements, source has %d", b.ID, r.Name, len(p.Placements), len(r.Placements))
			}
		}
	}
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
