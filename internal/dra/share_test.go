// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
)

func TestSharesNeverExceedTheMemory(t *testing.T) {
	n := nodeOf(oneGPU(0, mustModel(t, "h100-80gb"), dra.MIGOff, dra.SharingGPU))
	w := whatIf(n, mustPools(t, n))
	taken := int64(0)
	for i := 0; ; i++ {
		res := allocate(t, w, claimOf("c", ask{class: dra.ClassShare, start: -1, memory: 2000 << 20}))
		if res == nil {
			break
		}
		w.Commit(res...)
		taken += 2000 << 20
		if i > 100 {
			t.Fatal("no end")
		}
	}
	total := n.GPUs[0].Model.MemoryBytes
	if taken > total || taken+2000<<20 <= total {
		t.Errorf("%d bytes handed out of %d", taken, total)
	}
}

func TestAShareClaimWithoutANumberGetsTheWholeDevice(t *testing.T) {
	n := nodeOf(oneGPU(0, mustModel(t, "h100-80gb"), dra.MIGOff, dra.SharingGPU))
	w := whatIf(n, mustPools(t, n))
	res := allocate(t, w, claimOf("c", ask{class: dra.ClassShare, start: -1}))
	w.Commit(res...)
	got := res[0].Devices.Results[0].ConsumedCapacity[dra.CapMemory]
	if got.Value() != n.GPUs[0].Model.MemoryBytes {
		t.Errorf("consumed %s", got.String())
	}
	if allocate(t, w, claimOf("d", ask{class: dra.ClassShare, start: -1, memory: 1 << 30})) != nil {
		t.Error("a second share fits beside the whole device")
	}
}

// TestEachShareCapacityHasItsDefaultAndItsLimit: what a claim does not name has
// a default, and the sums of what claims name end at the device's.
func TestEachShareCapacityHasItsDefaultAndItsLimit(t *testing.T) {
	n := nodeOf(oneGPU(0, mustModel(t, "h100-80gb"), dra.MIGOff, dra.SharingGPU))
	w := whatIf(n, mustPools(t, n))
	small := ask{class: dra.ClassShare, start: -1, memory: 1 << 30}
	res := allocate(t, w, claimOf("c", small))
	for name, want := range map[resourceapi.QualifiedName]int64{dra.CapMemory: 1 << 30, dra.CapMultiprocessors: 0, dra.CapClients: 1} {
		if got := res[0].Devices.Results[0].ConsumedCapacity[name]; got.Value() != want {
			t.Errorf("%s: %s consumed, want %d", name, got.String(), want)
		}
	}
	for name, tc := range map[string]struct {
		first, second ask
		fit           bool
	}{
		"SMs to the last":     {ask{sms: 100}, ask{sms: 32}, true},
		"SMs beyond":          {ask{sms: 100}, ask{sms: 33}, false},
		"clients to the last": {ask{clients: 59}, ask{}, true},
		"clients beyond":      {ask{clients: 60}, ask{}, false},
	} {
		first, second := small, small
		first.sms, first.clients, second.sms = tc.first.sms, tc.first.clients, tc.second.sms
		held := allocate(t, w, claimOf("a", first))
		if held == nil {
			t.Fatalf("%s: the first share does not fit", name)
		}
		w.Commit(held...)
		if got := allocate(t, w, claimOf("b", second)) != nil; got != tc.fit {
			t.Errorf("%s: fits %v", name, got)
		}
		w.Release(held...)
	}
}

// TestTaintsCoverWhatOverlaps: a fault of one placement taints what shares
// silicon with it, and the weightiest effect survives the API's limit.
func TestTaintsCoverWhatOverlaps(t *testing.T) {
	g := oneGPU(0, mustModel(t, "h100-80gb"), dra.MIGDynamic, dra.SharingAll)
	at := gpu.Placement{Start: 4, Size: 4}
	g.Taints = []dra.Taint{{Reason: "xid", Value: "94", Effect: resourceapi.DeviceTaintEffectNoSchedule, On: &at}}
	pool := mustPools(t, nodeOf(g))[0]
	for _, s := range pool.Slices {
		for _, d := range s.Devices {
			m := pool.Devices[d.Name]
			want := m.Kind == dra.KindGPU || (m.Kind == dra.KindMIG && m.Partition.Placement.End() > 4)
			if got := len(d.Taints) == 1 && d.Taints[0].Key == "gpu.reslice.dev/xid"; got != want {
				t.Errorf("%s: taints %v", d.Name, d.Taints)
			}
		}
	}
	g.Taints = nil
	for i := range 20 {
		g.Taints = append(g.Taints, dra.Taint{Reason: fmt.Sprintf("r%02d", i), Effect: resourceapi.DeviceTaintEffectNone})
	}
	g.Taints = append(g.Taints, dra.Taint{Reason: "lost", Effect: resourceapi.DeviceTaintEffectNoExecute})
	d := mustPools(t, nodeOf(g))[0].Slices[1].Devices[0]
	if len(d.Taints) != resourceapi.DeviceTaintsMaxLength || d.Taints[0].Effect != resourceapi.DeviceTaintEffectNoExecute {
		t.Errorf("%d taints, the first %v", len(d.Taints), d.Taints[0])
	}
}

// TestAHeldPartitionThatTheDriverForgotClosesTheGPU: after a change of driver a
// claim may hold what nobody can describe any more.
func TestAHeldPartitionThatTheDriverForgotClosesTheGPU(t *testing.T) {
	for name, model := range map[string]*gpu.Model{"other profiles": mustModel(t, "h100-80gb"), "no profiles": mustModel(t, "b300-269gb")} {
		g := oneGPU(0, model, dra.MIGDynamic, dra.SharingAll)
		lost := gpu.Partition{Profile: 77, Placement: gpu.Placement{Start: 2, Size: 2}}
		g.Held = []dra.Held{{Kind: dra.KindMIG, Partition: lost}}
		n := nodeOf(g)
		pools := mustPools(t, n)
		checkPool(t, pools[0])
		w := whatIf(n, pools)
		w.Commit(held(pools[0].Name, deviceFor(t, pools[0], lost, false)))
		for _, class := range []string{dra.ClassGPU, dra.ClassMIG, dra.ClassSlice, dra.ClassShare} {
			if res := allocate(t, w, claimOf("x", ask{class: class, start: -1})); res != nil {
				t.Errorf("%s: class %s gives out %v", name, class, res)
			}
		}
		if len(pools[0].Notes) == 0 {
			t.Errorf("%s: no note", name)
		}
	}
}

// TestTheMonitorDeviceTakesNothing: it must stay allocatable while everything
// is in use, and no other class may select it.
func TestTheMonitorDeviceTakesNothing(t *testing.T) {
	n := nodeOf(oneGPU(0, mustModel(t, "h100-80gb"), dra.MIGDynamic, dra.SharingAll))
	w := whatIf(n, mustPools(t, n))
	w.Commit(allocate(t, w, claimOf("c", ask{class: dra.ClassGPU, start: -1}))...)
	claim := claimOf("m", ask{class: dra.ClassMonitor, start: -1})
	claim.Spec.Devices.Requests[0].Exactly.AdminAccess = ptr.To(true)
	claim.Spec.Devices.Requests[0].Exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	claim.Spec.Devices.Requests[0].Exactly.Count = 0
	for range 2 { // it can be held any number of times
		res := allocate(t, w, claim)
		if res == nil {
			t.Fatal("monitor is not allocatable beside a full GPU")
		}
		w.Commit(res...)
	}
	for _, class := range []string{dra.ClassGPU, dra.ClassMIG, dra.ClassSlice, dra.ClassShare} {
		if res := allocate(t, w, claimOf("x", ask{class: class, start: -1})); res != nil {
			t.Errorf("class %s gives out %v", class, res)
		}
	}
}

func TestClassesPromiseTheirIsolationLevel(t *testing.T) {
	for class, shared := range map[string]bool{dra.ClassGPU: false, dra.ClassMIG: false, dra.ClassSlice: false, dra.ClassShare: true} {
		n := nodeOf(oneGPU(0, mustModel(t, "h100-80gb"), dra.MIGDynamic, dra.SharingAll))
		w := whatIf(n, mustPools(t, n))
		a := ask{class: class, start: -1, memory: 1 << 30} // on exclusive devices this only filters
		res := allocate(t, w, claimOf("c", a))
		if got := res[0].Devices.Results[0].ShareID != nil; got != shared {
			t.Errorf("%s: a share: %v", class, got)
		}
	}
}
