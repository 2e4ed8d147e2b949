// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
)

// Bounds of a state file; a larger one is refused before it costs anything.
const (
	maxStateBytes   = 4 << 20
	maxEvents       = 256
	maxProcesses    = 4096 // per GPU
	maxClients      = 64   // per GPU or instance
	maxMemoryLimits = 1024 // per GPU
	maxMemoryBytes  = 1 << 50
)

// ParseState reads a state file. It tolerates nothing silently: an unknown
// field or version, trailing data, a layout that no GPU accepts or a reference
// to nothing is an error that says where and what would be right.
func ParseState(data []byte) (*State, error) {
	if len(data) > maxStateBytes {
		return nil, fmt.Errorf("simulator state has %d bytes, at most %d are read", len(data), maxStateBytes)
	}
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&head); err != nil {
		return nil, fmt.Errorf("simulator state is no JSON object%s: %w", placeOf(data, err), plainer(err))
	}
	if head.Version == nil || *head.Version != StateVersion {
		return nil, fmt.Errorf(`simulator state must have "version": %d: is this the right file?`, StateVersion)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	s := &State{}
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("parse simulator state%s: %w", placeOf(data, err), plainer(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("simulator state has data after the object: remove it")
	}
	if err := s.resolve(); err != nil {
		return nil, err
	}
	return s, nil
}

// Encode writes the state as ParseState reads it.
func (s *State) Encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode simulator state: %w", err)
	}
	return append(data, '\n'), nil
}

// resolve loads the board tables and checks the whole state.
func (s *State) resolve() error {
	if n := len(s.GPUs); n < 1 || n > MaxGPUs {
		return fmt.Errorf("simulator state: %d GPUs, must be 1 to %d", n, MaxGPUs)
	}
	s.models = map[string]*gpu.Model{}
	for i := range s.GPUs {
		if err := s.addModel(s.GPUs[i].Model); err != nil {
			return fmt.Errorf("simulator state: gpus[%d]: %w", i, err)
		}
	}
	return errors.Join(s.checkLabels(), s.check())
}

// resolved returns a checked copy.
func (s *State) resolved() (*State, error) {
	own := s.Clone()
	return own, own.resolve()
}

// check checks everything that can change while the boards stay.
func (s *State) check() error {
	if s.NodeName == "" {
		return errors.New(`simulator state: "nodeName" is empty: write the node's name`)
	}
	if s.Boots < 1 || !driverVersion.MatchString(s.Driver.Version) || s.Driver.CUDA < 1000 {
		return errors.New(`simulator state: "boots" must be at least 1, "driver.version" like "580.95.05" and "driver.cuda" like 13010`)
	}
	if len(s.Events) > maxEvents {
		return fmt.Errorf("simulator state: %d events, at most %d", len(s.Events), maxEvents)
	}
	for i := range s.GPUs {
		if err := errors.Join(s.checkUnique(i), s.checkGPU(&s.GPUs[i])); err != nil {
			return fmt.Errorf("simulator state: gpus[%d]: %w", i, err)
		}
	}
	return s.checkEvents()
}

var (
	driverVersion = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,4}){1,2}$`)
	pciBusID      = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
	pcieRoot      = regexp.MustCompile(`^(pci[0-9a-f]{4,8}:[0-9a-f]{2})?$`)
	gpuUUIDForm   = regexp.MustCompile(`^GPU-[0-9A-Za-z-]{1,60}$`)
)

// maxLabel is what an attribute of a device can hold, in bytes.
const maxLabel = 64

// checkLabels refuses a new label that no board here uses, that is too long to
// publish, or that another profile of the same board has.
func (s *State) checkLabels() error {
	for _, old := range slices.Sorted(maps.Keys(s.Driver.Labels)) {
		label, used := s.Driver.Labels[old], false
		if label == "" || len(label) > maxLabel {
			return fmt.Errorf("simulator state: driver.labels[%q]: %d bytes, write 1 to %d", old, len(label), maxLabel)
		}
		for _, m := range s.models {
			same := 0
			for _, p := range m.Profiles {
				if p.Name == label {
					same++
				}
			}
			if same > 1 {
				return fmt.Errorf("simulator state: driver.labels[%q]: two profiles of %s would be called %q", old, m.ID, label)
			}
			used = used || same == 1
		}
		if !used {
			return fmt.Errorf("simulator state: driver.labels[%q]: no GPU here has such a profile: leave it out", old)
		}
	}
	return nil
}

// addModel loads a board and gives its profiles this driver's labels.
func (s *State) addModel(id string) error {
	if s.models[id] != nil {
		return nil
	}
	table, err := models.ByID(id)
	if err != nil {
		return err
	}
	m := *table
	m.Profiles = slices.Clone(table.Profiles)
	for i := range m.Profiles {
		if label, ok := s.Driver.Labels[m.Profiles[i].Name]; ok {
			m.Profiles[i].Name = label
		}
	}
	if err := m.Validate(); err != nil {
		return fmt.Errorf(`with "driver.labels": %w`, err)
	}
	s.models[id] = &m
	return nil
}
