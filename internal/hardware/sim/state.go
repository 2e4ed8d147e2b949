// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
	"reslice.dev/internal/hardware"
)

// StateVersion is the version of the state file that this program reads and
// writes.
const StateVersion = 1

// MaxGPUs is how many GPUs a simulated node can have; the driver's table of
// capability minors ends at 32.
const MaxGPUs = 16

// The driver that NewState installs.
const (
	defaultDriver = "615.71.03"
	defaultCUDA   = 13040
)

// State is everything about the GPUs of one simulated node.
type State struct {
	// Version is StateVersion.
	Version  int    `json:"version"`
	NodeName string `json:"nodeName"`
	// Boots counts boots of the machine; the boot id follows from it.
	Boots  int         `json:"boots"`
	Driver DriverState `json:"driver"`
	// Sequence is the number of the newest event or instance.
	Sequence uint64     `json:"sequence"`
	GPUs     []GPUState `json:"gpus"`
	// Events are the newest ones, oldest first; see maxEvents.
	Events []EventState `json:"events,omitempty"`

	// models holds the boards under their ids with this driver's labels.
	// Filled by resolve and never changed afterwards.
	models map[string]*gpu.Model
}

// DriverState is the installed driver.
type DriverState struct {
	Version string `json:"version"`
	CUDA    int    `json:"cuda"`
	// Labels renames MIG profiles, as driver versions do: from the board
	// table's name to the name this driver prints.
	Labels map[string]string `json:"labels,omitempty"`
}

// GPUState is one simulated GPU.
type GPUState struct {
	UUID     gpu.UUID `json:"uuid"`
	Model    string   `json:"model"`
	Minor    int      `json:"minor"`
	PCIBusID string   `json:"pciBusID"`
	PCIeRoot string   `json:"pcieRoot,omitempty"`
	NUMANode int      `json:"numaNode"`
	// MIGMode and PendingMIGMode differ while a reset is due.
	MIGMode        gpu.MIGMode `json:"migMode,omitempty"`
	PendingMIGMode gpu.MIGMode `json:"pendingMIGMode,omitempty"`
	VGPUGuest      bool        `json:"vgpuGuest,omitempty"`
	// Mirrored swaps the halves in the map from placement to GI id, as some
	// boards do.
	Mirrored bool `json:"mirrored,omitempty"`
	// Renumbers gives the GPU another minor when its MIG mode is switched.
	Renumbers bool `json:"renumbers,omitempty"`
	Lost      bool `json:"lost,omitempty"`
	// Hidden leaves the GPU out of the inventory, with this reason.
	Hidden      string                  `json:"hidden,omitempty"`
	Instances   []InstanceState         `json:"instances,omitempty"`
	Processes   []ProcessState          `json:"processes,omitempty"`
	Clients     []string                `json:"clients,omitempty"`
	Load        *Load                   `json:"load,omitempty"`
	ComputeMode hardware.ComputeMode    `json:"computeMode"`
	TimeSlice   hardware.TimeSlice      `json:"timeSlice"`
	Limits      map[string]MemoryLimits `json:"memoryLimits,omitempty"`
	Health      HealthState             `json:"health"`
}

// InstanceState is a live GPU instance.
type InstanceState struct {
	ID      int           `json:"id"`
	Profile gpu.ProfileID `json:"profile"`
	Start   int           `json:"start"`
	Size    int           `json:"size"`
	// Serial tells an instance from a later one at the same place.
	Serial uint64 `json:"serial"`
	// Compute holds the compute instances by id.
	Compute []ComputeState `json:"compute,omitempty"`
	// Clients are foreign subscribers, such as an exporter, that keep the
	// instance from being destroyed.
	Clients []string `json:"clients,omitempty"`
	Load    *Load    `json:"load,omitempty"`
}

// ComputeState is a live compute instance.
type ComputeState struct {
	ID     int `json:"id"`
	Slices int `json:"slices"`
}

// ProcessState is a process on the GPU.
type ProcessState struct {
	PID         int     `json:"pid"`
	MemoryBytes int64   `json:"memoryBytes"`
	SMPercent   float64 `json:"smPercent,omitempty"`
	// GI and CI are -1 on the whole GPU.
	GI int `json:"gi"`
	CI int `json:"ci"`
	// Cgroup is counted against memory limits; may be empty.
	Cgroup string `json:"cgroup,omitempty"`
}

// Load is how busy a GPU or instance is, in percent of its own resources.
type Load struct {
	GPU       float64 `json:"gpu"`
	SM        float64 `json:"sm"`
	Occupancy float64 `json:"occupancy"`
	DRAM      float64 `json:"dram"`
	// MemoryBytes is allocated beyond what the processes hold.
	MemoryBytes int64 `json:"memoryBytes"`
	// Unmeasurable makes every reading unknown, as profiling fields at times
	// are.
	Unmeasurable bool `json:"unmeasurable,omitempty"`
}

// MemoryLimits are those of one cgroup, in bytes.
type MemoryLimits struct {
	Soft int64 `json:"soft"`
	// Hard is -1 for none.
	Hard int64 `json:"hard"`
}

// HealthState are the health values of a GPU.
type HealthState struct {
	Recovery           hardware.RecoveryAction   `json:"recovery,omitempty"`
	RowsCorrectable    int                       `json:"rowsCorrectable,omitempty"`
	RowsUncorrectable  int                       `json:"rowsUncorrectable,omitempty"`
	RowsPending        bool                      `json:"rowsPending,omitempty"`
	RowsFailure        bool                      `json:"rowsFailure,omitempty"`
	CorrectedECC       int64                     `json:"correctedECC,omitempty"`
	UncorrectedECC     int64                     `json:"uncorrectedECC,omitempty"`
	TemperatureCelsius float64                   `json:"temperatureCelsius"`
	PowerWatts         float64                   `json:"powerWatts"`
	Throttle           []hardware.ThrottleReason `json:"throttle,omitempty"`
}

// EventState is a recorded event.
type EventState struct {
	Sequence uint64             `json:"sequence"`
	Kind     hardware.EventKind `json:"kind"`
	GPU      gpu.UUID           `json:"gpu"`
	XID      int                `json:"xid,omitempty"`
	GI       int                `json:"gi"`
	CI       int                `json:"ci"`
}

// NewState returns the state of a freshly booted node. GPU i is of model
// i modulo len(ids), so that several ids make a mixed node. migOn turns MIG on
// where a model has it. Everything follows from the arguments: the same call
// gives the same UUIDs.
func NewState(ids []string, gpus int, nodeName string, migOn bool) (*State, error) {
	if len(ids) == 0 {
		return nil, fmt.Errorf("no GPU model: name at least one, such as h100-80gb")
	}
	if gpus < 1 || gpus > MaxGPUs {
		return nil, fmt.Errorf("%d GPUs on node %q: write 1 to %d", gpus, nodeName, MaxGPUs)
	}
	s := &State{
		Version: StateVersion, NodeName: nodeName, Boots: 1,
		Driver: DriverState{Version: defaultDriver, CUDA: defaultCUDA},
	}
	for i := range gpus {
		m, err := models.ByID(ids[i%len(ids)])
		if err != nil {
			return nil, err
		}
		s.GPUs = append(s.GPUs, newGPU(m, nodeName, i, gpus, migOn))
	}
	return s, s.resolve()
}

func newGPU(m *gpu.Model, nodeName string, index, of int, migOn bool) GPUState {
	g := GPUState{
		UUID: gpuUUID(nodeName, index), Model: m.ID, Minor: index,
		ComputeMode: hardware.ComputeModeDefault, TimeSlice: hardware.TimeSliceDefault,
		Health: HealthState{Recovery: hardware.RecoveryNone, TemperatureCelsius: 34, PowerWatts: 70},
	}
	g.PCIBusID, g.PCIeRoot, g.NUMANode = pciAddress(index, of)
	if m.HasMIG() {
		g.MIGMode = gpu.MIGDisabled
		if migOn {
			g.MIGMode = gpu.MIGEnabled
		}
		g.PendingMIGMode = g.MIGMode
	}
	return g
}

// busNumbers are the bus addresses of the GPUs of a common 8-GPU machine; the
// root complex of each is one bus below.
var busNumbers = [8]int{0x1b, 0x43, 0x52, 0x61, 0x9d, 0xc3, 0xd1, 0xdf}

func pciAddress(index, of int) (bus, root string, numa int) {
	domain, n := index/len(busNumbers), busNumbers[index%len(busNumbers)]
	if index >= (of+1)/2 {
		numa = 1
	}
	return fmt.Sprintf("%04x:%02x:00.0", domain, n), fmt.Sprintf("pci%04x:%02x", domain, n-1), numa
}

// BootID is the boot id that follows from node and number of boots.
func (s *State) BootID() string { return formatUUID("boot", s.NodeName, fmt.Sprint(s.Boots)) }

// Clone returns a deep copy.
func (s *State) Clone() *State {
	c := *s
	c.Driver.Labels = maps.Clone(s.Driver.Labels)
	c.Events = slices.Clone(s.Events)
	c.GPUs = slices.Clone(s.GPUs)
	for i := range c.GPUs {
		c.GPUs[i] = s.GPUs[i].clone()
	}
	return &c
}

func (g GPUState) clone() GPUState {
	g.Instances = slices.Clone(g.Instances)
	for i := range g.Instances {
		in := &g.Instances[i]
		in.Compute, in.Clients, in.Load = slices.Clone(in.Compute), slices.Clone(in.Clients), in.Load.clone()
	}
	g.Processes, g.Clients, g.Load = slices.Clone(g.Processes), slices.Clone(g.Clients), g.Load.clone()
	g.Limits = maps.Clone(g.Limits)
	g.Health.Throttle = slices.Clone(g.Health.Throttle)
	return g
}

func (l *Load) clone() *Load {
	if l == nil {
		return nil
	}
	c := *l
	return &c
}

func (s *State) gpu(id gpu.UUID) *GPUState {
	for i := range s.GPUs {
		if s.GPUs[i].UUID == id {
			return &s.GPUs[i]
		}
	}
	return nil
}

func (s *State) model(g *GPUState) *gpu.Model { return s.models[g.Model] }

func (g *GPUState) instance(gi int) *InstanceState {
	for i := range g.Instances {
		if g.Instances[i].ID == gi {
			return &g.Instances[i]
		}
	}
	return nil
}

func (in *InstanceState) partition() gpu.Partition {
	return gpu.Partition{Profile: in.Profile, Placement: gpu.Placement{Start: in.Start, Size: in.Size}}
}

func (in *InstanceState) hasCompute(ci int) bool {
	return slices.ContainsFunc(in.Compute, func(c ComputeState) bool { return c.ID == ci })
}

// layout is the law's view of the instances. The state is valid, so With
// cannot refuse; an error here is a mistake of this package.
func (s *State) layout(g *GPUState) (gpu.Layout, error) {
	l := gpu.NewLayout(s.model(g))
	for i := range g.Instances {
		var err error
		if l, err = l.With(g.Instances[i].partition()); err != nil {
			return l, err
		}
	}
	return l, nil
}
