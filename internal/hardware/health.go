// SPDX-License-Identifier: Apache-2.0

package hardware

import (
	"time"

	"reslice.dev/internal/gpu"
)

// RecoveryAction is what the driver asks for to make a GPU well again.
type RecoveryAction string

// Recovery actions (NVML field 230). Empty means that the driver does not say.
const (
	RecoveryUnknown       RecoveryAction = ""
	RecoveryNone          RecoveryAction = "none"
	RecoveryGPUReset      RecoveryAction = "gpu-reset"
	RecoveryNodeReboot    RecoveryAction = "node-reboot"
	RecoveryDrainP2P      RecoveryAction = "drain-p2p"
	RecoveryDrainAndReset RecoveryAction = "drain-and-reset"
	RecoveryIMEXDomain    RecoveryAction = "recover-imex-domain"
	RecoveryBusReset      RecoveryAction = "bus-reset"
	RecoverySystemReboot  RecoveryAction = "system-reboot"
)

// RecoveryActions lists the actions by NVML's number, 0 first.
var RecoveryActions = []RecoveryAction{
	RecoveryNone, RecoveryGPUReset, RecoveryNodeReboot, RecoveryDrainP2P, RecoveryDrainAndReset,
	RecoveryIMEXDomain, RecoveryBusReset, RecoverySystemReboot,
}

// RemappedRows counts memory rows that were replaced by spares.
type RemappedRows struct {
	Correctable, Uncorrectable int
	// Pending: a row waits for the next reset.
	Pending bool
	// Failure: there is no spare left; the GPU has to be replaced.
	Failure bool
	// Known is false where the GPU has no row remapping.
	Known bool
}

// ThrottleReason is why clocks are below what the load asks for.
type ThrottleReason string

// Throttle reasons that point at a fault. Others (idle, power cap within
// limits, application clocks) are normal and not reported.
const (
	ThrottleHardwareSlowdown ThrottleReason = "hw-slowdown"
	ThrottleHardwareThermal  ThrottleReason = "hw-thermal"
	ThrottleSoftwareThermal  ThrottleReason = "sw-thermal"
	ThrottlePowerBrake       ThrottleReason = "hw-power-brake"
)

// HealthValues are the polled health values of a GPU.
type HealthValues struct {
	Recovery RecoveryAction
	Rows     RemappedRows
	// CorrectedECC and UncorrectedECC count memory errors since the driver
	// was loaded.
	CorrectedECC, UncorrectedECC Reading
	// TemperatureCelsius is the core's; SlowdownCelsius is where the hardware
	// begins to throttle.
	TemperatureCelsius, SlowdownCelsius Reading
	// PowerWatts is the draw; PowerLimitWatts the enforced cap.
	PowerWatts, PowerLimitWatts Reading
	// Throttle lists the reasons at work, in the order of the constants.
	Throttle []ThrottleReason
}

// EventKind is the kind of a hardware event.
type EventKind string

// Kinds of event.
const (
	// EventXID: a driver error; Event.XID has its number.
	EventXID EventKind = "xid"
	// EventSingleBitECC and EventDoubleBitECC: memory errors.
	EventSingleBitECC EventKind = "single-bit-ecc"
	EventDoubleBitECC EventKind = "double-bit-ecc"
	// EventMIGChange: somebody changed the MIG configuration, maybe we.
	EventMIGChange EventKind = "mig-change"
	// EventUnavailable: the GPU became unavailable.
	EventUnavailable EventKind = "unavailable"
	// EventRecoveryAction: the recovery action changed: read it.
	EventRecoveryAction EventKind = "recovery-action"
	// EventMissed: events were dropped before this one: poll everything. It
	// names no GPU.
	EventMissed EventKind = "missed"
	// EventOther: any other kind; read Health.
	EventOther EventKind = "other"
)

// XIDUnknown is the XID that NVML reports when it lost the real one.
const XIDUnknown = 999

// Event is one hardware event.
type Event struct {
	Kind EventKind
	// GPU is the physical GPU, also for events of an instance.
	GPU gpu.UUID
	// XID is the error number for EventXID, else 0.
	XID int
	// GI and CI are [NoInstance] when the driver cannot attribute the event.
	GI, CI int
	// At is when it was received.
	At time.Time
}
