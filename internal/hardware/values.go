// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"strconv"
	"strings"
	"time"

	"reslice.dev/internal/gpu"
)

// NoInstance is the GI or CI of something that belongs to no instance.
const NoInstance = -1

// Instance names a GPU instance, or with GI = [NoInstance] the whole GPU.
type Instance struct {
	GPU gpu.UUID
	GI  int
}

// Whole names the whole GPU.
func Whole(id gpu.UUID) Instance { return Instance{GPU: id, GI: NoInstance} }

// Driver is the installed driver.
type Driver struct {
	// Version is the driver's version, "580.95.05".
	Version string
	// CUDA is the newest CUDA version that the driver supports, as NVML
	// encodes it: 1000*major + 10*minor, 13010 for 13.1.
	CUDA int
	// Able is what this driver can do at all; a GPU may still lack it.
	Able Abilities
}

// Major is the driver's branch, 580 for "580.95.05"; 0 if unreadable.
func (d Driver) Major() int {
	head, _, _ := strings.Cut(d.Version, ".")
	n, err := strconv.Atoi(head)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Abilities are features that depend on the driver's version.
type Abilities struct {
	// Activity: [Usage.Sample] exists (GPM).
	Activity bool
	// RecoveryAction: [HealthValues.Recovery] is filled.
	RecoveryAction bool
	// MemoryLimits: GPU memory limits for cgroups (R615).
	MemoryLimits bool
	// MPSNamespaces: the MPS control protocol version 3 (R615).
	MPSNamespaces bool
}

// HiddenGPU is a GPU that is not offered.
type HiddenGPU struct {
	// UUID may be empty when the driver cannot even tell that.
	UUID     gpu.UUID
	PCIBusID string
	// Reason is text for an operator.
	Reason string
}

// MIGModeState is the MIG mode now and after the next reset.
type MIGModeState struct {
	Current, Pending gpu.MIGMode
}

// Activation says what became of a request for a MIG mode.
type Activation string

// Outcomes of [MIG.SetMIGMode] (NVML's activationStatus).
const (
	// ActivationDone: the mode is in effect.
	ActivationDone Activation = "done"
	// ActivationInUse: a client holds the GPU or instances exist; the mode did
	// not change. Free the GPU and ask again.
	ActivationInUse Activation = "in use"
	// ActivationResetRequired: the mode is pending until the GPU is reset.
	ActivationResetRequired Activation = "reset required"
)

// GPUInstance is a live GPU instance.
type GPUInstance struct {
	// ID is reused after destruction and its relation to the placement differs
	// between boards: never an identity.
	ID int
	// Partition is profile id and placement, the identity on this GPU.
	Partition gpu.Partition
	// Compute lists the compute instances by id.
	Compute []ComputeInstance
}

// ComputeInstance is a live compute instance.
type ComputeInstance struct {
	// ID is unique inside the GPU instance.
	ID int
	// ComputeSlices is its size; one that spans has those of the profile.
	ComputeSlices int
	// UUID is the MIG UUID, "MIG-...".
	UUID gpu.UUID
}

// Memory is device memory in bytes. Free is Total - Reserved - Used.
type Memory struct {
	TotalBytes int64
	// ReservedBytes is kept by the driver and firmware.
	ReservedBytes int64
	// UsedBytes is allocated by processes.
	UsedBytes int64
}

// ReadingStatus tells a measured value from a missing one.
type ReadingStatus string

// Whether a value means anything.
const (
	// ReadingUnknown: no value now; another reading may have one.
	ReadingUnknown ReadingStatus = ""
	// ReadingValid: measured.
	ReadingValid ReadingStatus = "valid"
	// ReadingUnsupported: this GPU in this mode never gives the value.
	ReadingUnsupported ReadingStatus = "unsupported"
)

// Reading is a measured number or the absence of one. The zero Reading is
// unknown: nothing takes a forgotten field for an idle GPU.
type Reading struct {
	Value  float64
	Status ReadingStatus
}

// Valid returns a measured reading.
func Valid(v float64) Reading { return Reading{Value: v, Status: ReadingValid} }

// Get returns the value and whether it was measured.
func (r Reading) Get() (float64, bool) { return r.Value, r.Status == ReadingValid }

// Utilization is the coarse utilization of a whole GPU in percent, 0 to 100.
type Utilization struct {
	// GPU is the share of time in which any kernel ran; it says nothing about
	// how many SMs were busy.
	GPU Reading
	// Memory is the share of time in which device memory was accessed.
	Memory Reading
}

// MinSampleInterval is the least time between two samples whose difference
// means something (NVML, GPM).
const MinSampleInterval = 100 * time.Millisecond

// Sample is a snapshot of performance counters.
type Sample interface {
	// Instance is what was sampled.
	Instance() Instance
	// Close frees it; more than once is allowed.
	Close()
}

// Activity is what an instance did between two samples, in percent of its own
// resources, 0 to 100.
type Activity struct {
	// SM is the share of SM cycles with at least one warp resident.
	SM Reading
	// Occupancy is the share of warp slots in use.
	Occupancy Reading
	// DRAM is the share of memory bandwidth in use.
	DRAM Reading
}

// Process is a compute process on a GPU.
type Process struct {
	// PID is the process id in the host's PID namespace.
	PID int
	// MemoryBytes is its device memory; [gpu.Unknown] if the driver does not
	// say.
	MemoryBytes int64
	// SM is its share of the GPU's SM time in percent; unsupported under MIG.
	SM Reading
	// GI and CI say where it runs; [NoInstance] on the whole GPU.
	GI, CI int
}

// ComputeMode says who may open contexts on a GPU.
type ComputeMode string

// Compute modes of NVML that Reslice uses.
const (
	ComputeModeDefault ComputeMode = "default"
	// ComputeModeExclusiveProcess lets one process in: the MPS daemon.
	ComputeModeExclusiveProcess ComputeMode = "exclusive-process"
	ComputeModeProhibited       ComputeMode = "prohibited"
)

// TimeSlice is the length of a turn on a shared GPU, as the driver names it.
type TimeSlice string

// Lengths that the driver offers.
const (
	TimeSliceDefault TimeSlice = "default"
	TimeSliceShort   TimeSlice = "short"
	TimeSliceMedium  TimeSlice = "medium"
	TimeSliceLong    TimeSlice = "long"
)

// NoMemoryLimit is the hard limit of a cgroup that has none.
const NoMemoryLimit int64 = -1

// MemoryLimits are the GPU memory limits of a cgroup, in bytes.
type MemoryLimits struct {
	// SoftBytes is guaranteed; memory above it may be evicted. 0 is no
	// guarantee.
	SoftBytes int64
	// HardBytes is what allocations fail beyond; [NoMemoryLimit] is none.
	HardBytes int64
	// UsedBytes is current use. It is only read, never set.
	UsedBytes int64
}

// CapabilityMinors are device numbers N of /dev/nvidia-caps/nvidia-capN.
type CapabilityMinors struct {
	GI, CI int
}

// Bounds of the driver's table of MIG capability minors.
const (
	MaxCapabilityGPUs = 32
	MaxGPUInstances   = 15
	MaxComputePerGPU  = 8
)

// CapabilityMinorsOf computes the minors that the driver gives an instance,
// and false if a number is outside the driver's table. The formula is that of
// /proc/driver/nvidia-caps/mig-minors: GI 3 + (minor*15 + gi)*9, CI one more
// plus its id.
func CapabilityMinorsOf(gpuMinor, gi, ci int) (CapabilityMinors, bool) {
	if gpuMinor < 0 || gpuMinor >= MaxCapabilityGPUs || gi < 0 || gi >= MaxGPUInstances || ci < 0 || ci >= MaxComputePerGPU {
		return CapabilityMinors{}, false
	}
	at := 3 + (gpuMinor*MaxGPUInstances+gi)*(MaxComputePerGPU+1)
	return CapabilityMinors{GI: at, CI: at + 1 + ci}, true
}
