// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"slices"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

func (s *State) checkUnique(i int) error {
	g := &s.GPUs[i]
	switch {
	case !gpuUUIDForm.MatchString(string(g.UUID)):
		return fmt.Errorf("uuid %q, must look like GPU-4a4fce25-6b1a-5f30-808d-6fe361e8128b", g.UUID)
	case !pciBusID.MatchString(g.PCIBusID):
		return fmt.Errorf("pciBusID %q, must look like 0000:1b:00.0", g.PCIBusID)
	case !pcieRoot.MatchString(g.PCIeRoot):
		return fmt.Errorf("pcieRoot %q, must look like pci0000:1a", g.PCIeRoot)
	}
	for _, o := range s.GPUs[:i] {
		if o.UUID == g.UUID || o.Minor == g.Minor || o.PCIBusID == g.PCIBusID {
			return fmt.Errorf("uuid, minor and pciBusID must differ from those of %s", o.UUID)
		}
	}
	return nil
}

func (s *State) checkGPU(g *GPUState) error {
	m := s.model(g)
	switch {
	case g.Minor < 0 || g.Minor >= hardware.MaxCapabilityGPUs:
		return fmt.Errorf("minor %d, must be 0 to %d", g.Minor, hardware.MaxCapabilityGPUs-1)
	case g.NUMANode < -1 || g.NUMANode > 1024:
		return fmt.Errorf("numaNode %d, write -1 for none", g.NUMANode)
	case g.VGPUGuest && g.MIGMode != gpu.MIGUnsupported:
		return errors.New("a vGPU guest has no migMode: leave it out")
	case !validMode(g.MIGMode, m, g.VGPUGuest) || !validMode(g.PendingMIGMode, m, g.VGPUGuest):
		return fmt.Errorf("migMode %q and pendingMIGMode %q: write enabled or disabled on boards with MIG, nothing on others",
			g.MIGMode, g.PendingMIGMode)
	case len(g.Instances) > 0 && g.MIGMode != gpu.MIGEnabled:
		return errors.New("has instances but migMode is not enabled")
	case len(g.Clients) > maxClients || len(g.Limits) > maxMemoryLimits || len(g.Processes) > maxProcesses:
		return fmt.Errorf("more than %d clients, %d memory limits or %d processes", maxClients, maxMemoryLimits, maxProcesses)
	}
	return errors.Join(s.checkInstances(g), g.checkProcesses(), g.checkSharing(), g.Load.check(), g.Health.check())
}

// checkSharing checks what several processes on the GPU may do.
func (g *GPUState) checkSharing() error {
	if !slices.Contains(computeModes, g.ComputeMode) {
		return fmt.Errorf("computeMode %q, write one of %v", g.ComputeMode, computeModes)
	}
	if !slices.Contains(timeSlices, g.TimeSlice) {
		return fmt.Errorf("timeSlice %q, write one of %v", g.TimeSlice, timeSlices)
	}
	for path, l := range g.Limits {
		if l.Soft < 0 || l.Hard < -1 || l.Hard >= 0 && l.Soft > l.Hard {
			return fmt.Errorf("memoryLimits[%q]: soft %d and hard %d, must be 0 <= soft <= hard, or hard -1", path, l.Soft, l.Hard)
		}
	}
	return nil
}

var (
	computeModes = []hardware.ComputeMode{
		hardware.ComputeModeDefault, hardware.ComputeModeExclusiveProcess, hardware.ComputeModeProhibited,
	}
	timeSlices = []hardware.TimeSlice{
		hardware.TimeSliceDefault, hardware.TimeSliceShort, hardware.TimeSliceMedium, hardware.TimeSliceLong,
	}
)

func validMode(mode gpu.MIGMode, m *gpu.Model, guest bool) bool {
	if guest || !m.HasMIG() {
		return mode == gpu.MIGUnsupported
	}
	return mode == gpu.MIGEnabled || mode == gpu.MIGDisabled
}

func (s *State) checkInstances(g *GPUState) error {
	if len(g.Instances) > hardware.MaxGPUInstances {
		return fmt.Errorf("%d instances, at most %d", len(g.Instances), hardware.MaxGPUInstances)
	}
	if _, err := s.layout(g); err != nil {
		return fmt.Errorf("instances: %w", err)
	}
	for i := range g.Instances {
		in := &g.Instances[i]
		if in.ID < 0 || in.ID >= hardware.MaxGPUInstances || g.instance(in.ID) != in {
			return fmt.Errorf("instance id %d: must be unique and 0 to %d", in.ID, hardware.MaxGPUInstances-1)
		}
		prof, _ := s.model(g).Profile(in.Profile)
		if err := in.checkCompute(prof.ComputeSlices); err != nil {
			return fmt.Errorf("instance %d: %w", in.ID, err)
		}
		if len(in.Clients) > maxClients {
			return fmt.Errorf("instance %d: %d clients, at most %d", in.ID, len(in.Clients), maxClients)
		}
		if err := in.Load.check(); err != nil {
			return fmt.Errorf("instance %d: %w", in.ID, err)
		}
	}
	return nil
}

func (in *InstanceState) checkCompute(slicesOfProfile int) error {
	sum, last := 0, -1
	for _, c := range in.Compute {
		if c.ID <= last || c.ID >= hardware.MaxComputePerGPU || c.Slices < 1 || c.Slices > slicesOfProfile {
			return fmt.Errorf("compute instance %d of %d slices: ids ascend within 0 to %d, slices are 1 to %d",
				c.ID, c.Slices, hardware.MaxComputePerGPU-1, slicesOfProfile)
		}
		last = c.ID
		sum += c.Slices
	}
	if sum > slicesOfProfile {
		return fmt.Errorf("compute instances take %d of %d slices", sum, slicesOfProfile)
	}
	return nil
}

func (g *GPUState) checkProcesses() error {
	for _, p := range g.Processes {
		if p.PID < 1 || p.MemoryBytes < 0 || p.MemoryBytes > maxMemoryBytes || !percent(p.SMPercent) {
			return fmt.Errorf("process %d: pid must be positive, memory 0 to %d bytes, smPercent 0 to 100", p.PID, int64(maxMemoryBytes))
		}
		if err := g.checkTarget(p.GI, p.CI); err != nil {
			return fmt.Errorf("process %d: %w", p.PID, err)
		}
	}
	return nil
}

// checkTarget says whether something can run there: on the whole GPU only with
// MIG off, else in an existing compute instance.
func (g *GPUState) checkTarget(gi, ci int) error {
	if gi == hardware.NoInstance && ci == hardware.NoInstance {
		if g.MIGMode == gpu.MIGEnabled {
			return errors.New("with MIG on, a process needs gi and ci of a compute instance")
		}
		return nil
	}
	in := g.instance(gi)
	if in == nil || !in.hasCompute(ci) {
		return fmt.Errorf("gi %d ci %d does not exist", gi, ci)
	}
	return nil
}

func (l *Load) check() error {
	if l == nil {
		return nil
	}
	if !percent(l.GPU) || !percent(l.SM) || !percent(l.Occupancy) || !percent(l.DRAM) || l.MemoryBytes < 0 || l.MemoryBytes > maxMemoryBytes {
		return errors.New("load: gpu, sm, occupancy and dram are percentages 0 to 100, memoryBytes is not negative")
	}
	return nil
}

func (h *HealthState) check() error {
	if h.Recovery != hardware.RecoveryUnknown && !slices.Contains(hardware.RecoveryActions, h.Recovery) {
		return fmt.Errorf("health: recovery %q, write one of %v", h.Recovery, hardware.RecoveryActions)
	}
	if h.RowsCorrectable < 0 || h.RowsUncorrectable < 0 || h.CorrectedECC < 0 || h.UncorrectedECC < 0 || len(h.Throttle) > 8 {
		return errors.New("health: counts must not be negative, at most 8 throttle reasons")
	}
	return nil
}

func (s *State) checkEvents() error {
	last := uint64(0)
	for _, e := range s.Events {
		if e.Sequence <= last || e.Sequence > s.Sequence {
			return fmt.Errorf("simulator state: event sequence %d: must ascend up to %d", e.Sequence, s.Sequence)
		}
		last = e.Sequence
	}
	return nil
}

// percent is false for NaN too.
func percent(v float64) bool { return v >= 0 && v <= 100 }
