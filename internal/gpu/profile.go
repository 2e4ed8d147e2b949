// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ProfileID is NVML's GPU instance profile id (19 for 1g on an H100), the
// number that nvidia-smi mig -lgip shows and that create calls take. It is the
// stable half of a partition's identity; the label is not.
type ProfileID int

// Variant tells profiles of the same size apart by the engines they take.
type Variant string

// Variants of a profile. The suffix of the label says the same.
const (
	// VariantPlain is the ordinary profile, "1g.10gb".
	VariantPlain Variant = ""
	// VariantMedia is "+me": with the GPU's one JPEG and optical-flow engine.
	VariantMedia Variant = "+me"
	// VariantAllMedia is "+me.all": with every media engine of the GPU.
	VariantAllMedia Variant = "+me.all"
	// VariantNoMedia is "-me": without media engines.
	VariantNoMedia Variant = "-me"
	// VariantGraphics is "+gfx": able to run graphics.
	VariantGraphics Variant = "+gfx"
)

func variantRank(v Variant) int {
	return slices.Index([]Variant{VariantPlain, VariantNoMedia, VariantGraphics, VariantMedia, VariantAllMedia}, v)
}

// VariantOf reads the variant from a profile label. It is used where a table
// or the driver gives nothing but the label.
func VariantOf(label string) Variant {
	for _, v := range []Variant{VariantAllMedia, VariantMedia, VariantNoMedia, VariantGraphics} {
		if strings.HasSuffix(label, string(v)) {
			return v
		}
	}
	return VariantPlain
}

// Profile is one size of GPU instance that a model offers.
type Profile struct {
	ID ProfileID
	// Kind is NVML's profile enum (GPU_INSTANCE_PROFILE_*), the argument of
	// nvmlDeviceGetGpuInstanceProfileInfo. It is not the id.
	Kind int
	// Name is the label as the driver prints it, "1g.10gb". It changes with
	// driver versions: never an identity.
	Name    string
	Variant Variant
	// ComputeSlices and MemorySlices are what one instance takes of the GPU;
	// memory slices count in the placement grid of the model.
	ComputeSlices, MemorySlices int
	// MaxInstances is how many of this profile one GPU can hold.
	MaxInstances int
	// MemoryBytes is the memory a tenant of the instance sees, in bytes.
	MemoryBytes int64
	// Multiprocessors is the number of SMs; it is not proportional to compute
	// slices (3g of an H100 has 60, 4g has 64). [Unknown] if not stated.
	Multiprocessors int
	Engines         Engines
	// Placements are the only legal ones, by ascending start.
	Placements []Placement
	// Estimated says that some figure was derived, not seen on hardware.
	Estimated bool
}

// Placement is where an instance sits: memory slices Start up to, but not
// including, Start+Size.
type Placement struct {
	Start, Size int
}

// End is the first memory slice after the placement.
func (p Placement) End() int { return p.Start + p.Size }

// Overlaps reports whether two placements have a memory slice in common.
func (p Placement) Overlaps(o Placement) bool { return p.Start < o.End() && o.Start < p.End() }

// Contains reports whether o lies wholly inside p.
func (p Placement) Contains(o Placement) bool { return p.Start <= o.Start && o.End() <= p.End() }

// String prints NVML's notation, "{4}:4".
func (p Placement) String() string { return fmt.Sprintf("{%d}:%d", p.Start, p.Size) }

// ComparePlacements orders by start, then size.
func ComparePlacements(a, b Placement) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Size, b.Size))
}

func (p Profile) validate(m *Model) error {
	where := fmt.Sprintf("profile %d (%s)", p.ID, p.Name)
	switch {
	case p.ID < 0:
		return fmt.Errorf("%s: negative id", where)
	case p.Name == "":
		return fmt.Errorf("%s: no name", where)
	case variantRank(p.Variant) < 0:
		return fmt.Errorf("%s: unknown variant %q", where, p.Variant)
	case p.ComputeSlices < 1 || p.ComputeSlices > m.ComputeSlices:
		return fmt.Errorf("%s: %d compute slices, must be 1 to %d", where, p.ComputeSlices, m.ComputeSlices)
	case p.MemorySlices < 1 || p.MemorySlices > m.MemorySlices:
		return fmt.Errorf("%s: %d memory slices, must be 1 to %d", where, p.MemorySlices, m.MemorySlices)
	case p.MaxInstances < 1:
		return fmt.Errorf("%s: at most %d instances, must be at least 1", where, p.MaxInstances)
	}
	if err := p.validateFigures(where); err != nil {
		return err
	}
	return p.validatePlacements(m, where)
}

func (p Profile) validateFigures(where string) error {
	if p.MemoryBytes <= 0 {
		return fmt.Errorf("%s: memory %d bytes, must be positive", where, p.MemoryBytes)
	}
	if p.Multiprocessors < Unknown || p.Multiprocessors == 0 {
		return fmt.Errorf("%s: %d multiprocessors, must be positive or unknown", where, p.Multiprocessors)
	}
	for _, k := range EngineKinds {
		if p.Engines.Count(k) < Unknown {
			return fmt.Errorf("%s: negative %s", where, k)
		}
	}
	return nil
}

func (p Profile) validatePlacements(m *Model, where string) error {
	if len(p.Placements) == 0 || len(p.Placements) > MaxMemorySlices {
		return fmt.Errorf("%s: %d placements, must be 1 to %d", where, len(p.Placements), MaxMemorySlices)
	}
	for i, pl := range p.Placements {
		if pl.Size != p.MemorySlices || pl.Start < 0 || pl.End() > m.MemorySlices {
			return fmt.Errorf("%s: placement %v is not %d memory slices inside 0..%d", where, pl, p.MemorySlices, m.MemorySlices)
		}
		if i > 0 && pl.Start <= p.Placements[i-1].Start {
			return fmt.Errorf("%s: placement %v is out of order or appears twice", where, pl)
		}
	}
	return nil
}
