// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"context"

	"reslice.dev/internal/gpu"
)

// Node is the GPUs of one machine. Errors are described in errors.go; every
// method can also return the context's error, and [ErrLost] where it takes a
// GPU. Methods that take a GPU return [ErrNotFound] for an unknown UUID.
type Node interface {
	Inventory
	MIG
	Usage
	Sharing
	Health
	// Close ends the event streams and releases the driver. Calls after it
	// fail; calls at the same time must have returned.
	Close() error
}

// Inventory tells what is there.
type Inventory interface {
	// Driver describes the installed driver and what it can do.
	Driver(ctx context.Context) (Driver, error)
	// BootID identifies this boot of the machine: it differs after a reboot,
	// which destroys every MIG instance.
	BootID(ctx context.Context) (string, error)
	// GPUs lists the usable GPUs by PCI bus id. Models are read from the
	// driver, so that labels and sizes are those of this driver version. The
	// model pointers are shared and must not be changed.
	GPUs(ctx context.Context) ([]gpu.GPU, error)
	// Hidden lists the GPUs that GPUs leaves out, each with the reason.
	Hidden(ctx context.Context) ([]HiddenGPU, error)
}

// MIG creates and destroys MIG instances. All of it needs root.
type MIG interface {
	// MIGMode reads the current mode and the one that a reset would activate.
	// On hardware without MIG both are [gpu.MIGUnsupported], without error.
	MIGMode(ctx context.Context, id gpu.UUID) (MIGModeState, error)
	// SetMIGMode asks for a mode and says whether it took effect. It may
	// unbind the GPU: minors can change, so read GPUs again. [ErrUnsupported]
	// on GPUs without MIG and in vGPU guests.
	SetMIGMode(ctx context.Context, id gpu.UUID, enable bool) (Activation, error)
	// GPUInstances lists the live GPU instances by placement, whoever made
	// them. With MIG off the list is empty.
	GPUInstances(ctx context.Context, id gpu.UUID) ([]GPUInstance, error)
	// CreateGPUInstance creates an instance at exactly this placement.
	// [ErrInsufficientResources] if it is taken, [ErrInvalid] for a profile or
	// placement the GPU does not have, [ErrUnsupported] with MIG off.
	CreateGPUInstance(ctx context.Context, id gpu.UUID, p gpu.Partition) (GPUInstance, error)
	// DestroyGPUInstance destroys an empty instance; [ErrBusy] while it has a
	// compute instance or a client is subscribed to it.
	DestroyGPUInstance(ctx context.Context, id gpu.UUID, gi int) error
	// CreateComputeInstance creates the one compute instance that spans the
	// GPU instance. [ErrInsufficientResources] if it has any already.
	CreateComputeInstance(ctx context.Context, id gpu.UUID, gi int) (ComputeInstance, error)
	// DestroyComputeInstance destroys a compute instance; [ErrBusy] while a
	// process runs in it or a client is subscribed to it.
	DestroyComputeInstance(ctx context.Context, id gpu.UUID, gi, ci int) error
	// MIGUUID is the UUID under which CUDA addresses the compute instance. It
	// is the same again when the same placement is created again.
	MIGUUID(ctx context.Context, id gpu.UUID, gi, ci int) (gpu.UUID, error)
	// CapabilityMinors gives the numbers N of /dev/nvidia-caps/nvidia-capN
	// that open the instance. They follow the GPU's minor.
	CapabilityMinors(ctx context.Context, id gpu.UUID, gi, ci int) (CapabilityMinors, error)
}

// Usage measures. A value that cannot be measured is never 0: it is a
// [Reading] that says so, or [gpu.Unknown].
type Usage interface {
	// Memory reads the device memory of a GPU or GPU instance. [ErrUnsupported]
	// where memory is unified with the host; [ErrNotFound] for a GPU instance
	// without a compute instance, since only that can be asked.
	Memory(ctx context.Context, of Instance) (Memory, error)
	// Utilization reads NVML's coarse percentages of a whole GPU. Both are
	// unsupported while MIG is on.
	Utilization(ctx context.Context, id gpu.UUID) (Utilization, error)
	// Sample takes a snapshot of the performance counters (GPM) for
	// [Usage.Activity]. [ErrUnsupported] before Hopper. Close it after use.
	Sample(ctx context.Context, of Instance) (Sample, error)
	// Activity is what happened between two samples of the same instance that
	// lie [MinSampleInterval] or more apart. Values are relative to the
	// instance: a busy 1g shows 100. [ErrInvalid] for samples that do not
	// belong together.
	Activity(ctx context.Context, first, second Sample) (Activity, error)
	// Processes lists the compute processes on a GPU and in its instances, by
	// process id as the host sees it.
	Processes(ctx context.Context, id gpu.UUID) ([]Process, error)
}

// Sharing sets what several processes on one GPU may do.
type Sharing interface {
	// ComputeMode says who may open contexts on the GPU.
	ComputeMode(ctx context.Context, id gpu.UUID) (ComputeMode, error)
	// SetComputeMode changes it; needs root.
	SetComputeMode(ctx context.Context, id gpu.UUID, mode ComputeMode) error
	// SetTimeSlice sets how long a process keeps the GPU when several share
	// it by turns; device wide, live, and only with the default compute mode.
	SetTimeSlice(ctx context.Context, id gpu.UUID, slice TimeSlice) error
	// MemoryLimits reads the GPU memory limits of a cgroup (v2 path below the
	// cgroup root). Whole GPUs only, driver R615 or newer, else
	// [ErrUnsupported].
	MemoryLimits(ctx context.Context, id gpu.UUID, cgroup string) (MemoryLimits, error)
	// SetMemoryLimits sets soft and hard limits, also under a running
	// workload. [ErrInvalid] if soft exceeds hard or hard exceeds the GPU.
	SetMemoryLimits(ctx context.Context, id gpu.UUID, cgroup string, limits MemoryLimits) error
}

// Health tells whether GPUs are well.
type Health interface {
	// Health reads the health values of a GPU.
	Health(ctx context.Context, id gpu.UUID) (HealthValues, error)
	// Events delivers events of all GPUs from now on, until ctx ends or the
	// node is closed; then the channel is closed. A slow reader delays only
	// itself; if it falls too far behind, it gets [EventMissed].
	Events(ctx context.Context) (<-chan Event, error)
}
