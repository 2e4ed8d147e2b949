// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// displayProducts drive a monitor and are no compute GPUs.
var displayProducts = []string{"DGX Display", "NVIDIA DGX Display"}

// Driver implements [hardware.Inventory].
func (n *node) Driver(ctx context.Context) (hardware.Driver, error) {
	return n.version, n.ready(ctx, hardware.MethodDriver, "")
}

// BootID implements [hardware.Inventory].
func (n *node) BootID(ctx context.Context) (string, error) {
	if err := n.ready(ctx, hardware.MethodBootID, ""); err != nil {
		return "", err
	}
	id, err := n.host.bootID()
	if err != nil {
		return "", &hardware.Error{Call: hardware.MethodBootID, Err: err}
	}
	return id, nil
}

// GPUs implements [hardware.Inventory].
func (n *node) GPUs(ctx context.Context) ([]gpu.GPU, error) {
	gpus, _, err := n.discover(ctx, hardware.MethodGPUs)
	return gpus, err
}

// Hidden implements [hardware.Inventory].
func (n *node) Hidden(ctx context.Context) ([]hardware.HiddenGPU, error) {
	_, hidden, err := n.discover(ctx, hardware.MethodHidden)
	return hidden, err
}

// discover reads every GPU. One that cannot be read hides itself, not the
// others: a lost GPU must not take the node down.
func (n *node) discover(ctx context.Context, m hardware.Method) ([]gpu.GPU, []hardware.HiddenGPU, error) {
	if err := n.ready(ctx, m, ""); err != nil {
		return nil, nil, err
	}
	count, ret := n.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, nil, n.fail(m, "", ret, "count GPUs")
	}
	var gpus []gpu.GPU
	var hidden []hardware.HiddenGPU
	for i := range count {
		dev, ret := n.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			hidden = append(hidden, hardware.HiddenGPU{Reason: fmt.Sprintf("GPU %d: %v", i, cause(ret))})
			continue
		}
		g, err := n.read(dev)
		if err != nil {
			hidden = append(hidden, hardware.HiddenGPU{UUID: g.UUID, PCIBusID: g.PCIBusID, Reason: err.Error()})
			continue
		}
		n.remember(g.UUID, dev)
		gpus = append(gpus, g)
	}
	slices.SortFunc(gpus, func(a, b gpu.GPU) int { return cmp.Compare(a.PCIBusID, b.PCIBusID) })
	return gpus, hidden, nil
}

// read reads one GPU; on error the result has what was read until then.
func (n *node) read(dev nvml.Device) (gpu.GPU, error) {
	var g gpu.GPU
	uuid, ret := dev.GetUUID()
	if ret != nvml.SUCCESS {
		return g, fmt.Errorf("UUID: %w", cause(ret))
	}
	g.UUID = gpu.UUID(uuid)
	d, err := n.walk.NewDevice(dev)
	if err != nil {
		return g, err
	}
	if g.PCIBusID, err = d.GetPCIBusID(); err != nil {
		return g, err
	}
	g.PCIeRoot, g.NUMANode = n.host.pcieRoot(g.PCIBusID), n.host.numaNode(g.PCIBusID)
	if g.Minor, ret = dev.GetMinorNumber(); ret != nvml.SUCCESS {
		return g, fmt.Errorf("minor number: %w", cause(ret))
	}
	if mode, ret := dev.GetVirtualizationMode(); ret == nvml.SUCCESS {
		g.VGPUGuest = mode == nvml.GPU_VIRTUALIZATION_MODE_VGPU
	}
	// Brand and addressing mode only decorate: unknown is empty.
	g.Brand, _ = d.GetBrandAsString()
	g.AddressingMode, _ = d.GetAddressingModeAsString()
	m, err := n.model(d, g.VGPUGuest)
	if err != nil {
		return g, err
	}
	g.Model = n.share(m)
	// An old driver (R535) lists profiles only with MIG on. Without them the
	// GPU cannot be divided, whatever its mode.
	if current, _, ret := dev.GetMigMode(); ret == nvml.SUCCESS && m.HasMIG() {
		g.MIGMode = migMode(current)
	}
	return g, nil
}

// share gives equal models one pointer.
func (n *node) share(m *gpu.Model) *gpu.Model {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, known := range n.models {
		if reflect.DeepEqual(known, m) {
			return known
		}
	}
	n.models = append(n.models, m)
	return m
}

func (n *node) model(d device.Device, guest bool) (*gpu.Model, error) {
	name, ret := d.GetName()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("product name: %w", cause(ret))
	}
	if slices.Contains(displayProducts, name) {
		return nil, errors.New("drives a display")
	}
	m := &gpu.Model{ID: modelID(name), ProductName: name}
	var err error
	if m.ComputeCapability, err = d.GetCudaComputeCapabilityAsString(); err != nil {
		return nil, err
	}
	arch, ret := d.GetArchitecture()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("architecture: %w", cause(ret))
	}
	m.Architecture = architecture(arch, m.ComputeCapability)
	memory, ret := d.GetMemoryInfo()
	if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
		return nil, fmt.Errorf("memory: %w", cause(ret))
	}
	m.MemoryBytes = int64(memory.Total)
	if per := coresPerSM(m.ComputeCapability); per > 0 && n.has("nvmlDeviceGetNumGpuCores") {
		// With MIG on some drivers do not answer; then it is unknown.
		if cores, ret := d.GetNumGpuCores(); ret == nvml.SUCCESS {
			m.Multiprocessors = cores / per
		}
	}
	if !guest {
		addProfiles(m, n.profiles(d, memory.Total))
	}
	return m, m.Validate()
}

// profiles asks for every kind there could be.
func (n *node) profiles(d nvml.Device, totalBytes uint64) []gpu.Profile {
	if !n.has("nvmlDeviceGetGpuInstanceProfileInfo") || !n.has("nvmlDeviceGetGpuInstancePossiblePlacements_v2") {
		return nil
	}
	var out []gpu.Profile
	for kind := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		info, ret := d.GetGpuInstanceProfileInfo(kind)
		if ret != nvml.SUCCESS {
			continue // NOT_SUPPORTED or INVALID_ARGUMENT: not on this board or driver
		}
		at, ret := d.GetGpuInstancePossiblePlacements(&info)
		if ret != nvml.SUCCESS {
			continue
		}
		if p, ok := profile(n.walk, kind, info, at, totalBytes); ok {
			out = append(out, p)
		}
	}
	return out
}
