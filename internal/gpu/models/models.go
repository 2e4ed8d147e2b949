// SPDX-License-Identifier: Apache-2.0

// Package models holds the tables of known boards: what the simulator offers
// and what tests compare with. A real node never uses it: there every figure
// is read from NVML, because labels and memory sizes move with the driver.
//
// boards.json gives only what has been seen on hardware or in NVIDIA's
// documents. A figure that nobody has seen is null there; a profile without a
// memory size is left out, unless the row carries an estimate, which marks the
// profile as estimated.
//
// It may import gpu and the JSON and embed packages. Start with [All].
package models

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"reslice.dev/internal/gpu"
)

//go:embed boards.json
var boards []byte

const mib = 1 << 20

// maxTableBytes bounds a table file; the embedded one has about 23 KiB.
const maxTableBytes = 1 << 20

type table struct {
	Models []board `json:"models"`
}

type board struct {
	ID                string `json:"id"`
	ProductName       string `json:"productName"`
	Architecture      string `json:"architecture"`
	ComputeCapability string `json:"computeCapability"`
	MemorySlices      int    `json:"memorySlices"`
	ComputeSlices     int    `json:"computeSlices"`
	SM                *int   `json:"sm"`
	// TotalGiB is the memory rounded up to whole GiB, from the product's name.
	TotalGiB int64 `json:"totalGiB"`
	// MemoryMiB is the total as the driver reports it, where it has been seen.
	MemoryMiB int64 `json:"memoryMiB,omitempty"`
	Profiles  []row `json:"profiles"`
}

type row struct {
	Name          string   `json:"name"`
	ID            int      `json:"id"`
	Kind          int      `json:"kind"`
	ComputeSlices int      `json:"computeSlices"`
	MemorySlices  int      `json:"memorySlices"`
	Max           int      `json:"max"`
	Starts        []int    `json:"starts"`
	Estimate      *figures `json:"estimate,omitempty"`
	figures
}

// figures are the numbers of a row that may be unknown (null).
type figures struct {
	MemoryMiB *int64 `json:"memoryMiB"`
	SM        *int   `json:"sm"`
	Copy      *int   `json:"copy"`
	Decoders  *int   `json:"decoders"`
	Encoders  *int   `json:"encoders"`
	JPEG      *int   `json:"jpeg"`
	OFA       *int   `json:"ofa"`
}

var all = sync.OnceValues(func() ([]*gpu.Model, error) { return Parse(boards) })

// All returns every embedded board, in the order of the table. Callers share
// the values and must not change them.
func All() []*gpu.Model {
	models, err := all()
	if err != nil {
		// The table is part of the program and a test parses it.
		panic(fmt.Sprintf("embedded board table: %v", err))
	}
	return slices.Clone(models)
}

// ByID returns the board with this id. An unknown id is the caller's mistake;
// the error lists the ids there are.
func ByID(id string) (*gpu.Model, error) {
	var known []string
	for _, m := range All() {
		if m.ID == id {
			return m, nil
		}
		known = append(known, m.ID)
	}
	return nil, fmt.Errorf("unknown GPU model %q: write one of %s", id, strings.Join(known, ", "))
}

// Parse reads a board table. It refuses unknown fields, tables over 1 MiB and
// models that break the rules of [gpu.Model.Validate]; the error names each
// model and profile at fault.
func Parse(data []byte) ([]*gpu.Model, error) {
	if len(data) > maxTableBytes {
		return nil, fmt.Errorf("board table has %d bytes, at most %d are read", len(data), maxTableBytes)
	}
	var t table
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return nil, fmt.Errorf("parse board table: %w", err)
	}
	if len(t.Models) == 0 {
		return nil, errors.New(`board table has no models: write {"models": [{"id": ...}]}`)
	}
	var out []*gpu.Model
	var errs []error
	seen := map[string]bool{}
	for _, b := range t.Models {
		m := b.model()
		if err := m.Validate(); err != nil {
			errs = append(errs, err)
		}
		if seen[m.ID] {
			errs = append(errs, fmt.Errorf("model %q appears twice", m.ID))
		}
		seen[m.ID] = true
		out = append(out, m)
	}
	return out, errors.Join(errs...)
}

func (b board) model() *gpu.Model {
	m := &gpu.Model{
		ID:                b.ID,
		ProductName:       b.ProductName,
		Architecture:      gpu.Architecture(b.Architecture),
		ComputeCapability: b.ComputeCapability,
		MemorySlices:      b.MemorySlices,
		ComputeSlices:     b.ComputeSlices,
		MemoryBytes:       b.MemoryMiB * mib,
		Multiprocessors:   known(b.SM, nil, 0),
	}
	if m.MemoryBytes == 0 {
		m.MemoryBytes = b.TotalGiB * 1024 * mib
		m.Estimated = true
	}
	for _, r := range b.Profiles {
		if p, ok := r.profile(); ok {
			m.Profiles = append(m.Profiles, p)
		}
	}
	m.Normalize()
	return m
}

// profile translates a row; it reports false where not even an estimate of the
// memory exists, since such a profile cannot be offered to anyone.
func (r row) profile() (gpu.Profile, bool) {
	est := r.Estimate
	if est == nil {
		est = &figures{}
	}
	memory := known(r.MemoryMiB, est.MemoryMiB, 0)
	if memory == 0 {
		return gpu.Profile{}, false
	}
	p := gpu.Profile{
		ID:              gpu.ProfileID(r.ID),
		Kind:            r.Kind,
		Name:            r.Name,
		Variant:         gpu.VariantOf(r.Name),
		ComputeSlices:   r.ComputeSlices,
		MemorySlices:    r.MemorySlices,
		MaxInstances:    r.Max,
		MemoryBytes:     memory * mib,
		Multiprocessors: known(r.SM, est.SM, gpu.Unknown),
		Engines: gpu.Engines{
			Copy:    known(r.Copy, est.Copy, gpu.Unknown),
			Decoder: known(r.Decoders, est.Decoders, gpu.Unknown),
			Encoder: known(r.Encoders, est.Encoders, gpu.Unknown),
			JPEG:    known(r.JPEG, est.JPEG, gpu.Unknown),
			OFA:     known(r.OFA, est.OFA, gpu.Unknown),
		},
		Estimated: r.Estimate != nil,
	}
	for _, s := range r.Starts {
		p.Placements = append(p.Placements, gpu.Placement{Start: s, Size: r.MemorySlices})
	}
	return p, true
}

// known returns the observed figure, else the estimate, else the fallback.
func known[T int | int64](observed, estimate *T, fallback T) T {
	switch {
	case observed != nil:
		return *observed
	case estimate != nil:
		return *estimate
	}
	return fallback
}
