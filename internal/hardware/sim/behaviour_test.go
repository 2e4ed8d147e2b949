// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/sim"
)

func is(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestInstanceIDsFollowTheBuddyTree(t *testing.T) {
	for name, tc := range map[string]struct {
		model, profile  string
		start, want     int
		mirrored, wrong bool
	}{
		"whole":          {model: "h100-80gb", profile: "7g.80gb", want: 0},
		"left half":      {model: "h100-80gb", profile: "4g.40gb", want: 1},
		"right half":     {model: "h100-80gb", profile: "3g.40gb", start: 4, want: 2},
		"quarter":        {model: "h100-80gb", profile: "2g.20gb", start: 2, want: 4},
		"eighth":         {model: "h100-80gb", profile: "1g.10gb", start: 6, want: 13},
		"mirrored half":  {model: "h100-80gb", profile: "3g.40gb", start: 4, want: 1, mirrored: true},
		"mirrored 8th":   {model: "h100-80gb", profile: "1g.10gb", start: 0, want: 11, mirrored: true},
		"A30 quarter":    {model: "a30-24gb", profile: "1g.6gb", start: 3, want: 6},
		"12-grid":        {model: "rtxpro6000-96gb", profile: "1g.24gb", start: 9, want: 6},
		"12-grid's half": {model: "rtxpro6000-96gb", profile: "2g.48gb", start: 6, want: 2},
	} {
		n := newNode(t, sim.Config{State: newState(t, 1, true, tc.model)})
		id := firstGPU(t, n)
		must(t, n.SetMirrored(id, tc.mirrored))
		if gi := create(t, n, id, tc.profile, tc.start); gi.ID != tc.want {
			t.Errorf("%s: GI %d, want %d", name, gi.ID, tc.want)
		}
	}
}

// The driver's own choice of starts refuses a list that has a layout: the
// reason why Reslice always names the placement.
func TestAutomaticPlacementFailsWhereALayoutExists(t *testing.T) {
	n := newNode(t, sim.Config{State: newState(t, 1, true, "a100-40gb")})
	id := firstGPU(t, n)
	var starts []int
	var last error
	for _, profile := range []gpu.ProfileID{19, 19, 14, 9} {
		var gi hardware.GPUInstance
		if gi, last = n.CreateAutomatic(id, profile); last == nil {
			starts = append(starts, gi.Partition.Placement.Start)
		}
	}
	is(t, "the 3g", last, hardware.ErrInsufficientResources)
	if !slices.Equal(starts, []int{6, 4, 0}) {
		t.Errorf("starts %v", starts)
	}
}

func TestHoldersKeepInstancesAlive(t *testing.T) {
	ctx := t.Context()
	n := newNode(t, sim.Config{State: newState(t, 1, true, "h100-80gb")})
	id := firstGPU(t, n)
	gi := create(t, n, id, "1g.10gb", 0)
	ci, err := n.CreateComputeInstance(ctx, id, gi.ID)
	must(t, err)
	at := hardware.Instance{GPU: id, GI: gi.ID}
	must(t, n.AddProcess(id, sim.ProcessState{PID: 7, MemoryBytes: 1 << 30, GI: gi.ID, CI: ci.ID}))
	is(t, "CI with a process", n.DestroyComputeInstance(ctx, id, gi.ID, ci.ID), hardware.ErrBusy)
	must(t, n.RemoveProcess(id, 7))
	must(t, n.Subscribe(at, "dcgm"))
	is(t, "CI with a client", n.DestroyComputeInstance(ctx, id, gi.ID, ci.ID), hardware.ErrBusy)
	must(t, n.Unsubscribe(at, "dcgm"))
	must(t, n.DestroyComputeInstance(ctx, id, gi.ID, ci.ID))
	must(t, n.Subscribe(at, "dcgm"))
	is(t, "GI with a client", n.DestroyGPUInstance(ctx, id, gi.ID), hardware.ErrBusy)
	must(t, n.Unsubscribe(at, "dcgm"))
	must(t, n.DestroyGPUInstance(ctx, id, gi.ID))

	must(t, n.Subscribe(hardware.Whole(id), "nvidia-persistenced"))
	if got, err := n.SetMIGMode(ctx, id, false); err != nil || got != hardware.ActivationInUse {
		t.Errorf("mode with a client: %s %v", got, err)
	}
	is(t, "reset with a client", n.ResetGPU(id), hardware.ErrBusy)
}

func TestModeOverResetAndReboot(t *testing.T) {
	ctx := t.Context()
	for _, tc := range []struct {
		model       string
		activation  hardware.Activation
		afterReset  gpu.MIGMode
		afterReboot gpu.MIGMode
	}{
		{"a100-40gb", hardware.ActivationResetRequired, gpu.MIGEnabled, gpu.MIGEnabled},
		{"h100-80gb", hardware.ActivationDone, gpu.MIGEnabled, gpu.MIGDisabled},
	} {
		n := newNode(t, sim.Config{State: newState(t, 1, false, tc.model)})
		id := firstGPU(t, n)
		if got, err := n.SetMIGMode(ctx, id, true); err != nil || got != tc.activation {
			t.Errorf("%s: %s %v", tc.model, got, err)
		}
		must(t, n.ResetGPU(id))
		if mode, err := n.MIGMode(ctx, id); err != nil || mode.Current != tc.afterReset {
			t.Errorf("%s after reset: %v %v", tc.model, mode, err)
		}
		m := modelOf(t, n, id)
		_, err := n.CreateForeign(id, m.Partitions()[0], 1)
		must(t, err)
		before, err := n.BootID(ctx)
		must(t, err)
		must(t, n.Reboot())
		after, err := n.BootID(ctx)
		must(t, err)
		mode, err := n.MIGMode(ctx, id)
		must(t, err)
		live, err := n.GPUInstances(ctx, id)
		must(t, err)
		if before == after || mode.Current != tc.afterReboot || len(live) > 0 {
			t.Errorf("%s after reboot: boot id %s then %s, mode %v, instances %v", tc.model, before, after, mode, live)
		}
	}
}

func modelOf(t *testing.T, n *sim.Node, id gpu.UUID) *gpu.Model {
	t.Helper()
	gpus, err := n.GPUs(t.Context())
	must(t, err)
	return gpus[slices.IndexFunc(gpus, func(g gpu.GPU) bool { return g.UUID == id })].Model
}

func TestModeSwitchCanRenumberMinors(t *testing.T) {
	ctx := t.Context()
	n := newNode(t, sim.Config{State: newState(t, 2, false, "h100-80gb")})
	id := firstGPU(t, n)
	must(t, n.SetMinorRenumbering(id, true))
	_, err := n.SetMIGMode(ctx, id, true)
	must(t, err)
	gpus, err := n.GPUs(ctx)
	must(t, err)
	if gpus[0].UUID != id || gpus[0].Minor != 2 || gpus[1].Minor != 1 {
		t.Errorf("minors %d and %d", gpus[0].Minor, gpus[1].Minor)
	}
	gi := create(t, n, id, "1g.10gb", 0)
	_, err = n.CreateComputeInstance(ctx, id, gi.ID)
	must(t, err)
	got, err := n.CapabilityMinors(ctx, id, gi.ID, 0)
	if want, _ := hardware.CapabilityMinorsOf(2, gi.ID, 0); err != nil || got != want {
		t.Errorf("capabilities %v, want %v, %v", got, want, err)
	}
}

func TestRefusals(t *testing.T) {
	ctx := t.Context()
	n := newNode(t, sim.Config{State: newState(t, 1, true, "h100-80gb"), NoPermission: true})
	id := firstGPU(t, n)
	_, err := n.CreateGPUInstance(ctx, id, gpu.Partition{Profile: 19, Placement: gpu.Placement{Start: 0, Size: 1}})
	is(t, "without root", err, hardware.ErrNoPermission)

	n = newNode(t, sim.Config{State: newState(t, 2, false, "h100-80gb")})
	id = firstGPU(t, n)
	must(t, n.SetVGPUGuest(id, true))
	_, err = n.SetMIGMode(ctx, id, true)
	is(t, "MIG mode of a vGPU guest", err, hardware.ErrUnsupported)
	must(t, n.LoseGPU(id))
	_, err = n.Health(ctx, id)
	is(t, "a lost GPU", err, hardware.ErrLost)
	hidden, err := n.Hidden(ctx)
	if err != nil || len(hidden) != 1 || hidden[0].UUID != id {
		t.Errorf("hidden %v %v", hidden, err)
	}
	must(t, n.Close())
	if _, err := n.GPUs(ctx); err == nil {
		t.Error("a closed node answers")
	}
}

func TestRenamedProfilesKeepTheirIDs(t *testing.T) {
	n := newNode(t, sim.Config{State: newState(t, 1, true, "h100-80gb")})
	id := firstGPU(t, n)
	gi := create(t, n, id, "1g.10gb", 3)
	must(t, n.SetDriver(sim.DriverState{Version: "580.95.05", CUDA: 13000, Labels: map[string]string{"1g.10gb": "1g.11gb"}}))
	prof, _ := modelOf(t, n, id).Profile(19)
	live, err := n.GPUInstances(t.Context(), id)
	if err != nil || prof.Name != "1g.11gb" || len(live) != 1 || live[0].Partition != gi.Partition {
		t.Errorf("label %s, instances %v, %v", prof.Name, live, err)
	}
	_, err = n.MemoryLimits(t.Context(), id, "pod1")
	is(t, "memory limits before R615", err, hardware.ErrUnsupported)
}

func TestFaultsHappenBeforeOrAfterTheEffect(t *testing.T) {
	ctx := t.Context()
	n := newNode(t, sim.Config{State: newState(t, 1, true, "h100-80gb"), Fault: sim.Faults(
		sim.FailNth(hardware.MethodCreateGPUInstance, 1, hardware.ErrTimeout),
		sim.FailNthAfter(hardware.MethodCreateGPUInstance, 1, hardware.ErrTimeout),
	)})
	id := firstGPU(t, n)
	p := gpu.Partition{Profile: 19, Placement: gpu.Placement{Start: 0, Size: 1}}
	for i, want := range []int{0, 1} {
		_, err := n.CreateGPUInstance(ctx, id, p)
		is(t, "create", err, hardware.ErrTimeout)
		if live, err := n.GPUInstances(ctx, id); err != nil || len(live) != want {
			t.Errorf("fault %d: %d instances, want %d, %v", i, len(live), want, err)
		}
	}
}

func TestLatencyUsesTheGivenClock(t *testing.T) {
	var slept time.Duration
	n := newNode(t, sim.Config{
		State: newState(t, 1, true, "h100-80gb"), Latency: sim.Latencies(1), OneCallAtATime: true,
		Sleep: func(ctx context.Context, d time.Duration) error { slept += d; return ctx.Err() },
	})
	id := firstGPU(t, n)
	create(t, n, id, "1g.10gb", 0)
	if slept < 200*time.Millisecond {
		t.Errorf("slept %v", slept)
	}
}

func TestUsage(t *testing.T) {
	ctx := t.Context()
	now := time.Unix(1000, 0)
	n := newNode(t, sim.Config{State: newState(t, 1, true, "h100-80gb"), Clock: func() time.Time { return now }})
	id := firstGPU(t, n)
	gi := create(t, n, id, "3g.40gb", 4)
	at := hardware.Instance{GPU: id, GI: gi.ID}
	measure := func(of hardware.Instance) hardware.Activity {
		t.Helper()
		a, err := n.Sample(ctx, of)
		must(t, err)
		_, err = n.Activity(ctx, a, a)
		is(t, "samples at the same time", err, hardware.ErrInvalid)
		now = now.Add(time.Second)
		b, err := n.Sample(ctx, of)
		must(t, err)
		got, err := n.Activity(ctx, a, b)
		must(t, err)
		return got
	}
	if got := measure(at); got.SM.Status != hardware.ReadingUnknown {
		t.Errorf("without a compute instance: %+v", got)
	}
	_, err := n.CreateComputeInstance(ctx, id, gi.ID)
	must(t, err)
	must(t, n.SetLoad(at, sim.Load{SM: 66, Occupancy: 22, DRAM: 80, MemoryBytes: 5 << 30}))
	if got := measure(at); got.SM != hardware.Valid(66) || got.DRAM != hardware.Valid(80) {
		t.Errorf("instance: %+v", got)
	}
	if got := measure(hardware.Whole(id)); got.SM != hardware.Valid(66*60./132) || got.DRAM != hardware.Valid(40) {
		t.Errorf("whole GPU: %+v", got)
	}
	if m, err := n.Memory(ctx, at); err != nil || m.UsedBytes != 5<<30 {
		t.Errorf("memory %+v %v", m, err)
	}
	is(t, "too much memory", n.AddProcess(id, sim.ProcessState{PID: 1, MemoryBytes: 60 << 30, GI: gi.ID}), hardware.ErrInsufficientResources)

	ampere := newNode(t, sim.Config{State: newState(t, 1, false, "a100-40gb")})
	_, err = ampere.Sample(ctx, hardware.Whole(firstGPU(t, ampere)))
	is(t, "GPM on Ampere", err, hardware.ErrUnsupported)
}

func TestMemoryLimits(t *testing.T) {
	ctx := t.Context()
	n := newNode(t, sim.Config{State: newState(t, 1, false, "h100-80gb")})
	id := firstGPU(t, n)
	is(t, "soft above hard", n.SetMemoryLimits(ctx, id, "pod1", hardware.MemoryLimits{SoftBytes: 2, HardBytes: 1}), hardware.ErrInvalid)
	must(t, n.SetMemoryLimits(ctx, id, "pod1", hardware.MemoryLimits{HardBytes: 1 << 30}))
	p := sim.ProcessState{PID: 1, MemoryBytes: 1 << 30, GI: -1, CI: -1, Cgroup: "pod1"}
	must(t, n.AddProcess(id, p))
	p.PID, p.MemoryBytes = 2, 1
	is(t, "beyond the limit", n.AddProcess(id, p), hardware.ErrInsufficientResources)
	got, err := n.MemoryLimits(ctx, id, "pod1")
	if err != nil || got != (hardware.MemoryLimits{HardBytes: 1 << 30, UsedBytes: 1 << 30}) {
		t.Errorf("%+v %v", got, err)
	}
	must(t, n.SetMemoryLimits(ctx, id, "pod1", hardware.MemoryLimits{HardBytes: hardware.NoMemoryLimit}))
	must(t, n.AddProcess(id, p))
}

func TestEventsAndTheirLoss(t *testing.T) {
	n := newNode(t, sim.Config{State: newState(t, 1, true, "h100-80gb")})
	id := firstGPU(t, n)
	events, err := n.Events(t.Context())
	must(t, err)
	sent := hardware.Event{Kind: hardware.EventXID, GPU: id, XID: 94, GI: 9, CI: 0}
	must(t, n.InjectEvent(sent))
	if got := <-events; got != sent {
		t.Errorf("got %+v", got)
	}
	for i := range 1000 {
		sent.XID = i
		must(t, n.InjectEvent(sent))
	}
	missed := false
	for e := range events {
		missed = missed || e.Kind == hardware.EventMissed
		if e.XID == 999 {
			break
		}
	}
	if !missed {
		t.Error("no word of the missed events")
	}
}

func TestSameArgumentsSameNode(t *testing.T) {
	a, b := newState(t, 8, true, "h100-80gb"), newState(t, 8, true, "h100-80gb")
	x, err := a.Encode()
	must(t, err)
	y, err := b.Encode()
	must(t, err)
	if string(x) != string(y) {
		t.Error("two states from the same arguments differ")
	}
	if a.GPUs[0].NUMANode != 0 || a.GPUs[7].NUMANode != 1 || a.GPUs[0].PCIeRoot == a.GPUs[1].PCIeRoot {
		t.Errorf("implausible machine: %+v", a.GPUs)
	}
}
