// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"cmp"
	"context"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// MIGMode implements [hardware.MIG].
func (n *node) MIGMode(ctx context.Context, id gpu.UUID) (hardware.MIGModeState, error) {
	dev, err := n.device(ctx, hardware.MethodMIGMode, id)
	if err != nil {
		return hardware.MIGModeState{}, err
	}
	current, pending, ret := dev.GetMigMode()
	switch {
	case ret == nvml.SUCCESS:
		return hardware.MIGModeState{Current: migMode(current), Pending: migMode(pending)}, nil
	case ret == nvml.ERROR_NOT_SUPPORTED:
		return hardware.MIGModeState{}, nil
	}
	return hardware.MIGModeState{}, n.fail(hardware.MethodMIGMode, id, ret, "")
}

// SetMIGMode implements [hardware.MIG].
func (n *node) SetMIGMode(ctx context.Context, id gpu.UUID, enable bool) (hardware.Activation, error) {
	const m = hardware.MethodSetMIGMode
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return "", err
	}
	mode := nvml.DEVICE_MIG_DISABLE
	if enable {
		mode = nvml.DEVICE_MIG_ENABLE
	} else if live, err := n.GPUInstances(ctx, id); err != nil || len(live) > 0 {
		// Asked first: what a driver does to instances then is not documented.
		return hardware.ActivationInUse, err
	}
	status, ret := dev.SetMigMode(mode)
	// The switch can unbind the GPU: its handle may be another afterwards.
	n.forget(id)
	done, err := activation(status, ret)
	if err != nil {
		return "", &hardware.Error{Call: m, GPU: id, Err: err}
	}
	return done, nil
}

// migOn refuses with MIG off, as NVML would, but with the reason.
func (n *node) migOn(dev nvml.Device, m hardware.Method, id gpu.UUID) error {
	current, _, ret := dev.GetMigMode()
	switch {
	case ret == nvml.ERROR_NOT_SUPPORTED:
		return n.unsupported(m, id, "the GPU has no MIG")
	case ret != nvml.SUCCESS:
		return n.fail(m, id, ret, "MIG mode")
	case current != nvml.DEVICE_MIG_ENABLE:
		return n.unsupported(m, id, "MIG mode is off")
	}
	return nil
}

// GPUInstances implements [hardware.MIG].
func (n *node) GPUInstances(ctx context.Context, id gpu.UUID) ([]hardware.GPUInstance, error) {
	const m = hardware.MethodGPUInstances
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return nil, err
	}
	current, _, ret := dev.GetMigMode()
	if ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.SUCCESS && current != nvml.DEVICE_MIG_ENABLE {
		return nil, nil
	}
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, id, ret, "MIG mode")
	}
	var out []hardware.GPUInstance
	for kind := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		info, ret := dev.GetGpuInstanceProfileInfo(kind)
		if ret != nvml.SUCCESS {
			continue
		}
		live, ret := dev.GetGpuInstances(&info)
		if ret != nvml.SUCCESS {
			return nil, n.fail(m, id, ret, "list instances")
		}
		for _, gi := range live {
			in, err := n.live(m, id, gi)
			if err != nil {
				return nil, err
			}
			out = append(out, in)
		}
	}
	slices.SortFunc(out, func(a, b hardware.GPUInstance) int { return gpu.ComparePartitions(a.Partition, b.Partition) })
	return out, nil
}

func (n *node) live(m hardware.Method, id gpu.UUID, gi nvml.GpuInstance) (hardware.GPUInstance, error) {
	info, ret := gi.GetInfo()
	if ret != nvml.SUCCESS {
		return hardware.GPUInstance{}, n.fail(m, id, ret, "GPU instance")
	}
	out := hardware.GPUInstance{ID: int(info.Id), Partition: gpu.Partition{
		Profile:   gpu.ProfileID(info.ProfileId),
		Placement: gpu.Placement{Start: int(info.Placement.Start), Size: int(info.Placement.Size)},
	}}
	for kind := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		prof, ret := gi.GetComputeInstanceProfileInfo(kind, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if ret != nvml.SUCCESS {
			continue
		}
		cis, ret := gi.GetComputeInstances(&prof)
		if ret != nvml.SUCCESS {
			return out, n.fail(m, id, ret, "list compute instances")
		}
		for _, ci := range cis {
			c, err := n.liveCompute(m, id, ci, int(prof.SliceCount))
			if err != nil {
				return out, err
			}
			out.Compute = append(out.Compute, c)
		}
	}
	slices.SortFunc(out.Compute, func(a, b hardware.ComputeInstance) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// liveCompute reads a compute instance. The device in its info is the MIG
// device, although NVML's header calls it the parent.
func (n *node) liveCompute(m hardware.Method, id gpu.UUID, ci nvml.ComputeInstance, size int) (hardware.ComputeInstance, error) {
	info, ret := ci.GetInfo()
	if ret != nvml.SUCCESS {
		return hardware.ComputeInstance{}, n.fail(m, id, ret, "compute instance")
	}
	uuid, ret := info.Device.GetUUID()
	if ret != nvml.SUCCESS {
		return hardware.ComputeInstance{}, n.fail(m, id, ret, "MIG UUID")
	}
	return hardware.ComputeInstance{ID: int(info.Id), ComputeSlices: size, UUID: gpu.UUID(uuid)}, nil
}

// CreateGPUInstance implements [hardware.MIG].
func (n *node) CreateGPUInstance(ctx context.Context, id gpu.UUID, p gpu.Partition) (hardware.GPUInstance, error) {
	const m = hardware.MethodCreateGPUInstance
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return hardware.GPUInstance{}, err
	}
	if err := n.migOn(dev, m, id); err != nil {
		return hardware.GPUInstance{}, err
	}
	info, err := n.profileInfo(dev, m, id, p)
	if err != nil {
		return hardware.GPUInstance{}, err
	}
	at := nvml.GpuInstancePlacement{Start: uint32(p.Placement.Start), Size: uint32(p.Placement.Size)}
	gi, ret := dev.CreateGpuInstanceWithPlacement(&info, &at)
	if ret != nvml.SUCCESS {
		return hardware.GPUInstance{}, n.fail(m, id, ret, p.String())
	}
	return n.live(m, id, gi)
}

// profileInfo finds the profile by its id, and refuses a placement that it
// does not have before the driver is asked to.
func (n *node) profileInfo(dev nvml.Device, m hardware.Method, id gpu.UUID, p gpu.Partition) (nvml.GpuInstanceProfileInfo, error) {
	invalid := func(detail string) error {
		return &hardware.Error{Call: m, GPU: id, Err: hardware.ErrInvalid, Detail: p.String() + ": " + detail}
	}
	for kind := range nvml.GPU_INSTANCE_PROFILE_COUNT {
		info, ret := dev.GetGpuInstanceProfileInfo(kind)
		if ret != nvml.SUCCESS || gpu.ProfileID(info.Id) != p.Profile {
			continue
		}
		at, ret := dev.GetGpuInstancePossiblePlacements(&info)
		if ret != nvml.SUCCESS {
			return info, n.fail(m, id, ret, "placements")
		}
		for _, pl := range at {
			if int(pl.Start) == p.Placement.Start && int(pl.Size) == p.Placement.Size {
				return info, nil
			}
		}
		return info, invalid("not a placement of the profile")
	}
	return nvml.GpuInstanceProfileInfo{}, invalid("unknown profile")
}

// instance finds a GPU instance by its id.
func (n *node) instance(ctx context.Context, m hardware.Method, id gpu.UUID, gi int) (nvml.GpuInstance, error) {
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return nil, err
	}
	if err := n.migOn(dev, m, id); err != nil {
		return nil, err
	}
	in, ret := dev.GetGpuInstanceById(gi)
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, id, ret, "GPU instance")
	}
	return in, nil
}

func (n *node) compute(ctx context.Context, m hardware.Method, id gpu.UUID, gi, ci int) (nvml.ComputeInstance, error) {
	in, err := n.instance(ctx, m, id, gi)
	if err != nil {
		return nil, err
	}
	c, ret := in.GetComputeInstanceById(ci)
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, id, ret, "compute instance")
	}
	return c, nil
}

// DestroyGPUInstance implements [hardware.MIG].
func (n *node) DestroyGPUInstance(ctx context.Context, id gpu.UUID, gi int) error {
	in, err := n.instance(ctx, hardware.MethodDestroyGPUInstance, id, gi)
	if err != nil {
		return err
	}
	if ret := in.Destroy(); ret != nvml.SUCCESS {
		return n.fail(hardware.MethodDestroyGPUInstance, id, ret, "")
	}
	return nil
}

// CreateComputeInstance implements [hardware.MIG].
func (n *node) CreateComputeInstance(ctx context.Context, id gpu.UUID, gi int) (hardware.ComputeInstance, error) {
	const m = hardware.MethodCreateComputeInstance
	in, err := n.instance(ctx, m, id, gi)
	if err != nil {
		return hardware.ComputeInstance{}, err
	}
	best, found := nvml.ComputeInstanceProfileInfo{}, false
	for kind := range nvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		prof, ret := in.GetComputeInstanceProfileInfo(kind, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		// The largest spans; of several as large the first is the plain one.
		if ret == nvml.SUCCESS && (!found || prof.SliceCount > best.SliceCount) {
			best, found = prof, true
		}
	}
	if !found {
		return hardware.ComputeInstance{}, n.unsupported(m, id, "the GPU instance offers no compute instance profile")
	}
	ci, ret := in.CreateComputeInstance(&best)
	if ret != nvml.SUCCESS {
		return hardware.ComputeInstance{}, n.fail(m, id, ret, "")
	}
	return n.liveCompute(m, id, ci, int(best.SliceCount))
}

// DestroyComputeInstance implements [hardware.MIG].
func (n *node) DestroyComputeInstance(ctx context.Context, id gpu.UUID, gi, ci int) error {
	c, err := n.compute(ctx, hardware.MethodDestroyComputeInstance, id, gi, ci)
	if err != nil {
		return err
	}
	if ret := c.Destroy(); ret != nvml.SUCCESS {
		return n.fail(hardware.MethodDestroyComputeInstance, id, ret, "")
	}
	return nil
}

// MIGUUID implements [hardware.MIG].
func (n *node) MIGUUID(ctx context.Context, id gpu.UUID, gi, ci int) (gpu.UUID, error) {
	c, err := n.compute(ctx, hardware.MethodMIGUUID, id, gi, ci)
	if err != nil {
		return "", err
	}
	live, err := n.liveCompute(hardware.MethodMIGUUID, id, c, 0)
	return live.UUID, err
}

// CapabilityMinors implements [hardware.MIG].
func (n *node) CapabilityMinors(ctx context.Context, id gpu.UUID, gi, ci int) (hardware.CapabilityMinors, error) {
	const m = hardware.MethodCapabilityMinors
	if _, err := n.compute(ctx, m, id, gi, ci); err != nil {
		return hardware.CapabilityMinors{}, err
	}
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return hardware.CapabilityMinors{}, err
	}
	minor, ret := dev.GetMinorNumber()
	if ret != nvml.SUCCESS {
		return hardware.CapabilityMinors{}, n.fail(m, id, ret, "minor number")
	}
	out, ok := hardware.CapabilityMinorsOf(minor, gi, ci)
	if !ok {
		return out, n.unsupported(m, id, "GPU %d, GI %d, CI %d is outside the driver's table of capabilities", minor, gi, ci)
	}
	return out, nil
}
