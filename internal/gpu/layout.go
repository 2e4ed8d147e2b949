// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Partition names one GPU instance that could exist on a GPU: a profile at a
// placement. It does not say that the instance exists.
type Partition struct {
	Profile   ProfileID
	Placement Placement
}

// String prints id and placement, "19@{6}:1".
func (p Partition) String() string { return fmt.Sprintf("%d@%v", p.Profile, p.Placement) }

// ComparePartitions orders by placement, then profile id.
func ComparePartitions(a, b Partition) int {
	return cmp.Or(ComparePlacements(a.Placement, b.Placement), cmp.Compare(a.Profile, b.Profile))
}

// RefusalReason says which rule of the silicon a partition breaks.
type RefusalReason string

// Why [Layout.With] refuses a partition.
const (
	RefusedUnknownProfile RefusalReason = "unknown profile"
	RefusedPlacement      RefusalReason = "not a placement of the profile"
	RefusedOverlap        RefusalReason = "memory slices are taken"
	RefusedMaxInstances   RefusalReason = "profile has its maximum of instances"
	RefusedCompute        RefusalReason = "compute slices are exhausted"
	RefusedEngines        RefusalReason = "engines are exhausted"
)

// RefusedError is returned by [Layout.With] for a partition that the silicon
// would not accept.
type RefusedError struct {
	Partition Partition
	Reason    RefusalReason
	// Blocking is a partition in the way, if the reason is an overlap.
	Blocking Partition
	// Engine is the exhausted kind, if the reason is the engines.
	Engine EngineKind
}

// Error names the partition, the rule and what is in the way.
func (e *RefusedError) Error() string {
	msg := fmt.Sprintf("partition %v refused: %s", e.Partition, e.Reason)
	if e.Reason == RefusedOverlap {
		msg += fmt.Sprintf(" by %v", e.Blocking)
	}
	if e.Reason == RefusedEngines {
		msg += fmt.Sprintf(" (%s)", e.Engine)
	}
	return msg
}

// Layout is a set of partitions of one GPU that can exist together. The zero
// Layout is useless; start from [NewLayout]. A Layout is a value: With and
// Without return another and never change the receiver.
type Layout struct {
	model *Model
	parts []Partition // by ComparePartitions
}

// NewLayout returns the empty layout of a model.
func NewLayout(m *Model) Layout { return Layout{model: m} }

// Model returns the model that the layout belongs to.
func (l Layout) Model() *Model { return l.model }

// Partitions returns the partitions by ascending start. The slice is a copy.
func (l Layout) Partitions() []Partition { return slices.Clone(l.parts) }

// Len is the number of partitions.
func (l Layout) Len() int { return len(l.parts) }

// Has reports whether exactly this partition is in the layout.
func (l Layout) Has(p Partition) bool { return slices.Contains(l.parts, p) }

// With returns the layout with one more partition, or a *[RefusedError] that
// says which rule forbids it. This is the only place where Reslice decides
// what a GPU can hold (NVIDIA's MIG user guide, and per-profile tables of
// NVML): placements come from the profile's list and do not overlap, each
// profile stays within its maximum, and neither compute slices nor engines are
// handed out twice. Engines are what lets "+me" exist once and what leaves
// only "-me" profiles beside "+me.all".
func (l Layout) With(p Partition) (Layout, error) {
	if err := l.refuses(p); err != nil {
		return l, err
	}
	at, _ := slices.BinarySearchFunc(l.parts, p, ComparePartitions)
	return Layout{model: l.model, parts: slices.Insert(slices.Clone(l.parts), at, p)}, nil
}

// Accepts reports whether With would succeed, without building the result.
func (l Layout) Accepts(p Partition) bool { return l.refuses(p) == nil }

// Without returns the layout without this partition; if it is not there, the
// layout is returned as it is.
func (l Layout) Without(p Partition) Layout {
	at := slices.Index(l.parts, p)
	if at < 0 {
		return l
	}
	return Layout{model: l.model, parts: slices.Delete(slices.Clone(l.parts), at, at+1)}
}

// refuses returns a plain *RefusedError, not an error, so that "no objection"
// compares equal to nil.
func (l Layout) refuses(p Partition) *RefusedError {
	if l.model == nil {
		return &RefusedError{Partition: p, Reason: RefusedUnknownProfile}
	}
	prof, ok := l.model.Profile(p.Profile)
	if !ok {
		return &RefusedError{Partition: p, Reason: RefusedUnknownProfile}
	}
	if !slices.Contains(prof.Placements, p.Placement) {
		return &RefusedError{Partition: p, Reason: RefusedPlacement}
	}
	same, compute := 1, prof.ComputeSlices
	for _, q := range l.parts {
		if q.Placement.Overlaps(p.Placement) {
			return &RefusedError{Partition: p, Reason: RefusedOverlap, Blocking: q}
		}
		if q.Profile == p.Profile {
			same++
		}
		qp, _ := l.model.Profile(q.Profile)
		compute += qp.ComputeSlices
	}
	if same > prof.MaxInstances {
		return &RefusedError{Partition: p, Reason: RefusedMaxInstances}
	}
	if compute > l.model.ComputeSlices {
		return &RefusedError{Partition: p, Reason: RefusedCompute}
	}
	return l.refusesEngines(p, prof)
}

func (l Layout) refusesEngines(p Partition, prof Profile) *RefusedError {
	for _, k := range EngineKinds {
		limit, sum := l.model.EngineLimit(k), prof.Engines.Count(k)
		if limit == Unknown || sum <= 0 {
			continue
		}
		for _, q := range l.parts {
			qp, _ := l.model.Profile(q.Profile)
			sum += qp.Engines.Count(k)
		}
		if sum > limit {
			return &RefusedError{Partition: p, Reason: RefusedEngines, Engine: k}
		}
	}
	return nil
}

// String draws the memory slices, one letter for each partition from left to
// right and a dot for a free slice: "aab.cccc".
func (l Layout) String() string {
	if l.model == nil {
		return ""
	}
	row := []byte(strings.Repeat(".", l.model.MemorySlices))
	for i, p := range l.parts {
		for s := p.Placement.Start; s < p.Placement.End() && s < len(row); s++ {
			row[s] = byte('a' + i%26)
		}
	}
	return string(row)
}

// Key identifies a layout among layouts of the same model.
func (l Layout) Key() string {
	var b strings.Builder
	for _, p := range l.parts {
		fmt.Fprintf(&b, "%d@%d ", p.Profile, p.Placement.Start)
	}
	return b.String()
}

// Layouts enumerates every layout of a model, the empty one first. An H100 has
// some 2,000; call it for tests and for tables, not on a hot path.
func Layouts(m *Model) []Layout {
	all := m.Partitions()
	slices.SortFunc(all, ComparePartitions)
	var out []Layout
	var grow func(l Layout, from int)
	grow = func(l Layout, from int) {
		out = append(out, l)
		for i := from; i < len(all); i++ {
			if next, err := l.With(all[i]); err == nil {
				grow(next, i+1)
			}
		}
	}
	grow(NewLayout(m), 0)
	return out
}
