// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// Health implements [hardware.Health]. A value that the GPU does not give is a
// reading without a value, not an error; only a lost GPU fails.
func (n *node) Health(ctx context.Context, id gpu.UUID) (hardware.HealthValues, error) {
	const m = hardware.MethodHealth
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return hardware.HealthValues{}, err
	}
	temperature, ret := dev.GetTemperature(nvml.TEMPERATURE_GPU)
	if ret == nvml.ERROR_GPU_IS_LOST {
		return hardware.HealthValues{}, n.fail(m, id, ret, "")
	}
	out := hardware.HealthValues{TemperatureCelsius: reading(temperature, ret, 1)}
	slowdown, ret := dev.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	out.SlowdownCelsius = reading(slowdown, ret, 1)
	power, ret := dev.GetPowerUsage()
	out.PowerWatts = reading(power, ret, 1e-3)
	limit, ret := dev.GetEnforcedPowerLimit()
	out.PowerLimitWatts = reading(limit, ret, 1e-3)
	corrected, ret := dev.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
	out.CorrectedECC = reading(corrected, ret, 1)
	uncorrected, ret := dev.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	out.UncorrectedECC = reading(uncorrected, ret, 1)
	if corr, unc, pending, failure, ret := dev.GetRemappedRows(); ret == nvml.SUCCESS {
		out.Rows = hardware.RemappedRows{Correctable: corr, Uncorrectable: unc, Pending: pending, Failure: failure, Known: true}
	}
	if n.has("nvmlDeviceGetCurrentClocksEventReasons") {
		if bits, ret := dev.GetCurrentClocksEventReasons(); ret == nvml.SUCCESS {
			out.Throttle = throttle(bits)
		}
	}
	out.Recovery = recovery(dev)
	return out, nil
}

// throttle picks the reasons that point at a fault (nvml.h,
// nvmlClocksEventReason*).
func throttle(bits uint64) []hardware.ThrottleReason {
	var out []hardware.ThrottleReason
	for _, r := range []struct {
		bit    uint64
		reason hardware.ThrottleReason
	}{
		{0x08, hardware.ThrottleHardwareSlowdown}, {0x40, hardware.ThrottleHardwareThermal},
		{0x20, hardware.ThrottleSoftwareThermal}, {0x80, hardware.ThrottlePowerBrake},
	} {
		if bits&r.bit != 0 {
			out = append(out, r.reason)
		}
	}
	return out
}

func recovery(dev nvml.Device) hardware.RecoveryAction {
	field := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	if ret := dev.GetFieldValues(field); ret != nvml.SUCCESS || nvml.Return(field[0].NvmlReturn) != nvml.SUCCESS {
		return hardware.RecoveryUnknown
	}
	return recoveryAction(binary.NativeEndian.Uint32(field[0].Value[:4]))
}

// recoveryAction reads NVML's number; one that is newer than this program
// counts as unknown.
func recoveryAction(number uint32) hardware.RecoveryAction {
	if int(number) >= len(hardware.RecoveryActions) {
		return hardware.RecoveryUnknown
	}
	return hardware.RecoveryActions[number]
}

const (
	// eventWait is how long a wait blocks, and so how late a stream ends.
	eventWait = 1000 // ms
	// eventBuffer is how many events wait for a slow reader.
	eventBuffer  = 256
	wantedEvents = nvml.EventTypeSingleBitEccError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeXidCriticalError |
		nvml.EventMigConfigChange | nvml.EventTypeSingleBitEccErrorStorm | nvml.EventTypeDramRetirementEvent |
		nvml.EventTypeDramRetirementFailure | nvml.EventTypeNonFatalPoisonError | nvml.EventTypeFatalPoisonError |
		nvml.EventTypeGpuUnavailableError | nvml.EventTypeGpuRecoveryAction
)

// Events implements [hardware.Health].
func (n *node) Events(ctx context.Context) (<-chan hardware.Event, error) {
	const m = hardware.MethodEvents
	gpus, err := n.GPUs(ctx)
	if err != nil {
		return nil, err
	}
	set, ret := n.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, "", ret, "create event set")
	}
	for _, g := range gpus {
		dev, err := n.device(ctx, m, g.UUID)
		if err != nil {
			continue // gone since the list: Hidden has it
		}
		types, ret := dev.GetSupportedEventTypes()
		if ret == nvml.SUCCESS && types&wantedEvents != 0 {
			ret = dev.RegisterEvents(types&wantedEvents, set)
		}
		if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
			_ = set.Free()
			return nil, n.fail(m, g.UUID, ret, "register events")
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		_ = set.Free()
		return nil, &hardware.Error{Call: m, Err: context.Canceled, Detail: "the node was closed"}
	}
	out := make(chan hardware.Event, eventBuffer)
	n.streams.Add(1)
	go n.stream(ctx, set, out)
	return out, nil
}

// stream waits in short turns, since a wait cannot be interrupted.
func (n *node) stream(ctx context.Context, set nvml.EventSet, out chan<- hardware.Event) {
	defer n.streams.Done()
	defer close(out)
	defer func() { _ = set.Free() }()
	missed := false
	for ctx.Err() == nil {
		select {
		case <-n.stop:
			return
		default:
		}
		data, ret := set.Wait(eventWait)
		switch {
		case ret == nvml.ERROR_TIMEOUT:
			continue
		case ret == nvml.SUCCESS:
		default:
			// A GPU that is lost makes every wait fail at once: say it and
			// breathe.
			missed = true
			if !pause(ctx, n.stop) {
				return
			}
		}
		e := hardware.Event{Kind: hardware.EventMissed, GI: hardware.NoInstance, CI: hardware.NoInstance, At: n.clock()}
		if !missed {
			e = n.event(data)
		}
		select {
		case out <- e:
			missed = false
		default:
			missed = true // the reader is behind by the whole buffer
		}
	}
}

func pause(ctx context.Context, stop <-chan struct{}) bool {
	t := time.NewTimer(eventWait * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	case <-t.C:
		return true
	}
}

func (n *node) event(data nvml.EventData) hardware.Event {
	e := hardware.Event{At: n.clock()}
	if uuid, ret := data.Device.GetUUID(); ret == nvml.SUCCESS {
		e.GPU = gpu.UUID(uuid)
	}
	e.Kind = eventKind(data.EventType)
	if e.Kind == hardware.EventXID {
		e.XID = int(data.EventData)
	}
	e.GI, e.CI = instanceNumber(data.GpuInstanceId), instanceNumber(data.ComputeInstanceId)
	return e
}

func eventKind(eventType uint64) hardware.EventKind {
	switch eventType {
	case nvml.EventTypeXidCriticalError:
		return hardware.EventXID
	case nvml.EventTypeSingleBitEccError:
		return hardware.EventSingleBitECC
	case nvml.EventTypeDoubleBitEccError:
		return hardware.EventDoubleBitECC
	case nvml.EventMigConfigChange:
		return hardware.EventMIGChange
	case nvml.EventTypeGpuUnavailableError:
		return hardware.EventUnavailable
	case nvml.EventTypeGpuRecoveryAction:
		return hardware.EventRecoveryAction
	}
	return hardware.EventOther
}
