// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Limits that bound a model table, so that a broken one is refused before it
// can cost memory or time. Real boards have at most 12 memory slices (RTX PRO
// 6000), 7 compute slices and 11 profiles.
const (
	MaxMemorySlices  = 32
	MaxComputeSlices = 32
	MaxProfiles      = 64
)

// Unknown is the value of a number that no source states, for example the
// decoder count of a profile that nobody has listed on hardware. It is never
// the same as 0.
const Unknown = -1

// Architecture is NVIDIA's name of a GPU generation, as NVML reports it.
type Architecture string

// Architectures that Reslice tells apart. Others are allowed: newer ones, which
// count as able, and those before Volta.
const (
	Kepler         Architecture = "Kepler"
	Maxwell        Architecture = "Maxwell"
	Pascal         Architecture = "Pascal"
	Volta          Architecture = "Volta"
	Turing         Architecture = "Turing"
	Ampere         Architecture = "Ampere"
	Ada            Architecture = "Ada Lovelace"
	Hopper         Architecture = "Hopper"
	Blackwell      Architecture = "Blackwell"
	BlackwellUltra Architecture = "Blackwell Ultra"
)

// ModeSwitchNeedsReset reports whether turning MIG mode on or off needs a GPU
// reset. Ampere needs one and keeps the mode over a reboot; later generations
// switch without and lose the mode on reboot (NVML, nvmlDeviceSetMigMode).
func (a Architecture) ModeSwitchNeedsReset() bool { return a == Ampere }

// SupportsMPS reports whether the generation runs MPS with memory protection
// between clients and a thread percentage for each, which came with Volta.
func (a Architecture) SupportsMPS() bool {
	return !slices.Contains([]Architecture{"", Kepler, Maxwell, Pascal}, a)
}

// Model is what one GPU product can do. On a real node it is read from NVML;
// the simulator reads it from a table. It never changes while a node is up.
type Model struct {
	// ID is our own short name, for example "h100-80gb".
	ID string
	// ProductName is what NVML calls the product.
	ProductName  string
	Architecture Architecture
	// ComputeCapability is the CUDA compute capability, "9.0" for Hopper.
	ComputeCapability string
	// MemoryBytes is the memory of the whole GPU with MIG off, in bytes;
	// 0 if the driver does not say (unified memory).
	MemoryBytes int64
	// Multiprocessors is the number of SMs with MIG off; 0 if unknown.
	Multiprocessors int
	// MemorySlices is the size of the placement grid: 8 on A100 and H100, 4 on
	// A30, 12 on RTX PRO 6000. 0 if the product has no MIG.
	MemorySlices int
	// ComputeSlices is how many compute slices MIG can hand out; 0 without MIG.
	ComputeSlices int
	// Profiles are the MIG profiles, in ascending order of size.
	Profiles []Profile
	// Estimated says that a figure of the GPU itself was derived, not seen on
	// hardware. Profiles carry their own mark.
	Estimated bool
}

// Engines counts the fixed-function units that a MIG instance gets. They are
// never shared between instances. A count may be [Unknown].
type Engines struct {
	Copy, Decoder, Encoder, JPEG, OFA int
}

// EngineKinds lists the engines in the order that every output uses.
var EngineKinds = []EngineKind{EngineCopy, EngineDecoder, EngineEncoder, EngineJPEG, EngineOFA}

// EngineKind names one kind of fixed-function unit.
type EngineKind string

// The kinds of engine, with the names under which they are published.
const (
	EngineCopy    EngineKind = "copyEngines"
	EngineDecoder EngineKind = "decoders"
	EngineEncoder EngineKind = "encoders"
	EngineJPEG    EngineKind = "jpegEngines"
	EngineOFA     EngineKind = "ofaEngines"
)

// Count returns the number of engines of one kind.
func (e Engines) Count(k EngineKind) int {
	switch k {
	case EngineCopy:
		return e.Copy
	case EngineDecoder:
		return e.Decoder
	case EngineEncoder:
		return e.Encoder
	case EngineJPEG:
		return e.JPEG
	case EngineOFA:
		return e.OFA
	}
	return 0
}

// HasMIG reports whether the product can be divided at all.
func (m *Model) HasMIG() bool { return m.MemorySlices > 0 && len(m.Profiles) > 0 }

// Profile returns the profile with the NVML id, and whether the model has it.
func (m *Model) Profile(id ProfileID) (Profile, bool) {
	for i := range m.Profiles {
		if m.Profiles[i].ID == id {
			return m.Profiles[i], true
		}
	}
	return Profile{}, false
}

// ProfileByName returns the profile with this label. Labels change with driver
// versions, so this is for people's input only, never for identity.
func (m *Model) ProfileByName(name string) (Profile, bool) {
	for i := range m.Profiles {
		if m.Profiles[i].Name == name {
			return m.Profiles[i], true
		}
	}
	return Profile{}, false
}

// Partitions lists every legal partition of an empty GPU: profiles in the
// model's order, placements by ascending start.
func (m *Model) Partitions() []Partition {
	var out []Partition
	for _, p := range m.Profiles {
		for _, pl := range p.Placements {
			out = append(out, Partition{Profile: p.ID, Placement: pl})
		}
	}
	return out
}

// EngineLimit is how many engines of a kind all instances together can hold:
// what the largest instance gets. It is [Unknown] if any profile's count is
// unknown, and then this kind constrains nothing.
func (m *Model) EngineLimit(k EngineKind) int {
	limit := 0
	for _, p := range m.Profiles {
		n := p.Engines.Count(k)
		if n == Unknown {
			return Unknown
		}
		limit = max(limit, n)
	}
	return limit
}

// Whole returns the profile that covers the whole GPU (7g on an H100), if the
// table has one.
func (m *Model) Whole() (Profile, bool) {
	for _, p := range m.Profiles {
		if p.Variant == VariantPlain && p.MemorySlices == m.MemorySlices {
			return p, true
		}
	}
	return Profile{}, false
}

// Normalize sorts profiles by size and placements by start, the order that all
// output follows.
func (m *Model) Normalize() {
	slices.SortStableFunc(m.Profiles, CompareProfiles)
	for i := range m.Profiles {
		slices.SortFunc(m.Profiles[i].Placements, ComparePlacements)
	}
}

// CompareProfiles orders by memory slices, then compute slices, then plain
// before variants, then id: the smallest first, so that first fit never takes
// more than is asked for.
func CompareProfiles(a, b Profile) int {
	return cmp.Or(
		cmp.Compare(a.MemorySlices, b.MemorySlices),
		cmp.Compare(a.ComputeSlices, b.ComputeSlices),
		cmp.Compare(variantRank(a.Variant), variantRank(b.Variant)),
		cmp.Compare(a.ID, b.ID),
	)
}

// Validate says what is wrong with a model table: every problem, each with the
// profile it is in. A nil result means that [Layout] can rely on the table.
func (m *Model) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if m.ID == "" {
		add("model has no id: give it a short name such as h100-80gb")
	}
	if m.MemoryBytes < 0 || m.Multiprocessors < 0 {
		add("model %q: memory %d and multiprocessors %d must not be negative", m.ID, m.MemoryBytes, m.Multiprocessors)
	}
	if m.MemorySlices < 0 || m.MemorySlices > MaxMemorySlices || m.ComputeSlices < 0 || m.ComputeSlices > MaxComputeSlices {
		add("model %q: %d memory slices and %d compute slices are out of range 0..%d and 0..%d",
			m.ID, m.MemorySlices, m.ComputeSlices, MaxMemorySlices, MaxComputeSlices)
	}
	if len(m.Profiles) > MaxProfiles {
		add("model %q: %d profiles, at most %d are supported", m.ID, len(m.Profiles), MaxProfiles)
		return errors.Join(errs...)
	}
	seen := map[ProfileID]bool{}
	for _, p := range m.Profiles {
		if seen[p.ID] {
			add("model %q: profile id %d appears twice", m.ID, p.ID)
		}
		seen[p.ID] = true
		if err := p.validate(m); err != nil {
			add("model %q: %w", m.ID, err)
		}
	}
	return errors.Join(errs...)
}
