// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"errors"
	"fmt"
	"strings"

	"reslice.dev/internal/gpu"
)

// What a caller branches on, with [errors.Is]. Every error of a [Node] wraps
// one of these, or a context error, or is an unexpected failure of the driver
// that retrying later may or may not cure.
var (
	// ErrBusy: something holds the object (NVML's IN_USE): a process in the
	// compute instance, a compute instance in the GPU instance, or a client
	// such as a metrics exporter subscribed to it. Retry after it let go.
	ErrBusy = errors.New("in use")
	// ErrInsufficientResources: slices or engines are taken. NVML answers this
	// for an occupied placement too, never "already exists".
	ErrInsufficientResources = errors.New("insufficient resources")
	// ErrUnsupported: this GPU, mode or driver cannot do it. Never retry.
	ErrUnsupported = errors.New("not supported")
	// ErrNoPermission: the process may not do it. MIG needs root, and in a
	// container NVIDIA_MIG_CONFIG_DEVICES=all.
	ErrNoPermission = errors.New("no permission")
	// ErrNotFound: no such GPU or instance (any more).
	ErrNotFound = errors.New("not found")
	// ErrInvalid: an argument that no state of the GPU would accept, such as a
	// placement that the profile does not have.
	ErrInvalid = errors.New("invalid argument")
	// ErrLost: the GPU fell off the bus; any call may answer this.
	ErrLost = errors.New("GPU is lost")
	// ErrTimeout: the driver did not answer in time. The change may or may not
	// have happened: read again before the next step.
	ErrTimeout = errors.New("driver timed out")
	// ErrResetRequired: the GPU has to be reset first.
	ErrResetRequired = errors.New("GPU reset required")
	// ErrDriverNotLoaded: there is no NVIDIA driver on this machine.
	ErrDriverNotLoaded = errors.New("no NVIDIA driver on this machine")
)

// Error says which call failed, on what, why, and what to do about it. It
// wraps the sentinel.
type Error struct {
	// Call is the method of the interface, such as CreateGPUInstance.
	Call Method
	// GPU is the GPU concerned; empty if none.
	GPU gpu.UUID
	// Detail names the object or holder, "GI 9 has compute instance 0"; may be
	// empty.
	Detail string
	// Next is what the reader can do; empty takes a text that fits the
	// sentinel.
	Next string
	Err  error
}

// Error renders "CreateGPUInstance on GPU-...: detail: cause; next step".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Call))
	if e.GPU != "" {
		fmt.Fprintf(&b, " on %s", e.GPU)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if next := e.NextStep(); next != "" {
		fmt.Fprintf(&b, "; %s", next)
	}
	return b.String()
}

// Unwrap returns the sentinel or cause.
func (e *Error) Unwrap() error { return e.Err }

// NextStep is what the reader can do about the error, or "" if nothing
// general can be said.
func (e *Error) NextStep() string {
	if e.Next != "" {
		return e.Next
	}
	for _, n := range nextSteps {
		if errors.Is(e.Err, n.err) {
			return n.text
		}
	}
	return ""
}

var nextSteps = []struct {
	err  error
	text string
}{
	{ErrBusy, "stop what holds it and try again"},
	{ErrInsufficientResources, "list the GPU's instances and free the placement first"},
	{ErrNoPermission, "run as root and, in a container, with NVIDIA_MIG_CONFIG_DEVICES=all and NVIDIA_MIG_MONITOR_DEVICES=all"},
	{ErrNotFound, "read the inventory again"},
	{ErrLost, "drain the node and reboot it"},
	{ErrTimeout, "read the state again before retrying"},
	{ErrResetRequired, "reset the GPU when nothing uses it"},
	{ErrDriverNotLoaded, "install the driver or run with --hardware=sim"},
}

// Method names a method of the interface, for errors, metrics, and the fault
// rules of the simulator.
type Method string

// The methods of [Node].
const (
	MethodDriver                 Method = "Driver"
	MethodBootID                 Method = "BootID"
	MethodGPUs                   Method = "GPUs"
	MethodHidden                 Method = "Hidden"
	MethodMIGMode                Method = "MIGMode"
	MethodSetMIGMode             Method = "SetMIGMode"
	MethodGPUInstances           Method = "GPUInstances"
	MethodCreateGPUInstance      Method = "CreateGPUInstance"
	MethodDestroyGPUInstance     Method = "DestroyGPUInstance"
	MethodCreateComputeInstance  Method = "CreateComputeInstance"
	MethodDestroyComputeInstance Method = "DestroyComputeInstance"
	MethodMIGUUID                Method = "MIGUUID"
	MethodCapabilityMinors       Method = "CapabilityMinors"
	MethodMemory                 Method = "Memory"
	MethodUtilization            Method = "Utilization"
	MethodSample                 Method = "Sample"
	MethodActivity               Method = "Activity"
	MethodProcesses              Method = "Processes"
	MethodComputeMode            Method = "ComputeMode"
	MethodSetComputeMode         Method = "SetComputeMode"
	MethodSetTimeSlice           Method = "SetTimeSlice"
	MethodMemoryLimits           Method = "MemoryLimits"
	MethodSetMemoryLimits        Method = "SetMemoryLimits"
	MethodHealth                 Method = "Health"
	MethodEvents                 Method = "Events"
)
