// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"context"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

var computeModes = map[hardware.ComputeMode]nvml.ComputeMode{
	hardware.ComputeModeDefault:          nvml.COMPUTEMODE_DEFAULT,
	hardware.ComputeModeExclusiveProcess: nvml.COMPUTEMODE_EXCLUSIVE_PROCESS,
	hardware.ComputeModeProhibited:       nvml.COMPUTEMODE_PROHIBITED,
}

// ComputeMode implements [hardware.Sharing].
func (n *node) ComputeMode(ctx context.Context, id gpu.UUID) (hardware.ComputeMode, error) {
	const m = hardware.MethodComputeMode
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return "", err
	}
	mode, ret := dev.GetComputeMode()
	if ret != nvml.SUCCESS {
		return "", n.fail(m, id, ret, "")
	}
	for ours, theirs := range computeModes {
		if theirs == mode {
			return ours, nil
		}
	}
	return "", n.unsupported(m, id, "compute mode %d", mode)
}

// SetComputeMode implements [hardware.Sharing].
func (n *node) SetComputeMode(ctx context.Context, id gpu.UUID, mode hardware.ComputeMode) error {
	const m = hardware.MethodSetComputeMode
	theirs, ok := computeModes[mode]
	if !ok {
		return &hardware.Error{Call: m, GPU: id, Err: hardware.ErrInvalid, Detail: "compute mode " + string(mode)}
	}
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return err
	}
	if ret := dev.SetComputeMode(theirs); ret != nvml.SUCCESS {
		return n.fail(m, id, ret, string(mode))
	}
	return nil
}

// SetTimeSlice implements [hardware.Sharing]: NVML has no call for it.
func (n *node) SetTimeSlice(ctx context.Context, id gpu.UUID, slice hardware.TimeSlice) error {
	if _, err := n.device(ctx, hardware.MethodSetTimeSlice, id); err != nil {
		return err
	}
	return &hardware.Error{
		Call: hardware.MethodSetTimeSlice, GPU: id, Err: hardware.ErrUnsupported,
		Detail: "NVML cannot set time slice " + string(slice),
		Next:   "set it with nvidia-smi compute-policy --set-timeslice",
	}
}

// limitable finds a GPU on a driver that has memory limits.
func (n *node) limitable(ctx context.Context, m hardware.Method, id gpu.UUID) (nvml.Device, error) {
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return nil, err
	}
	if !n.version.Able.MemoryLimits {
		return nil, n.unsupported(m, id, "memory limits need driver R615, this is %s", n.version.Version)
	}
	return dev, nil
}

// MemoryLimits implements [hardware.Sharing].
func (n *node) MemoryLimits(ctx context.Context, id gpu.UUID, cgroup string) (hardware.MemoryLimits, error) {
	dev, err := n.limitable(ctx, hardware.MethodMemoryLimits, id)
	if err != nil {
		return hardware.MemoryLimits{}, err
	}
	l, ret := dev.GetMemoryLimits_v1(cgroup)
	if ret != nvml.SUCCESS {
		return hardware.MemoryLimits{}, n.fail(hardware.MethodMemoryLimits, id, ret, cgroup)
	}
	// All ones is no limit, which bytes turns into NoMemoryLimit.
	return hardware.MemoryLimits{SoftBytes: bytes(l.SoftLimit), HardBytes: bytes(l.HardLimit), UsedBytes: bytes(l.CurrentUsed)}, nil
}

// SetMemoryLimits implements [hardware.Sharing].
func (n *node) SetMemoryLimits(ctx context.Context, id gpu.UUID, cgroup string, l hardware.MemoryLimits) error {
	const m = hardware.MethodSetMemoryLimits
	dev, err := n.limitable(ctx, m, id)
	if err != nil {
		return err
	}
	if cgroup == "" || l.SoftBytes < 0 || l.HardBytes < hardware.NoMemoryLimit {
		return &hardware.Error{Call: m, GPU: id, Err: hardware.ErrInvalid, Detail: "needs a cgroup and limits that are not negative"}
	}
	hard := uint64(math.MaxUint64)
	if l.HardBytes >= 0 {
		hard = uint64(l.HardBytes)
	}
	if ret := dev.SetMemoryLimits_v1(cgroup, uint64(l.SoftBytes), hard); ret != nvml.SUCCESS {
		return n.fail(m, id, ret, cgroup)
	}
	return nil
}
