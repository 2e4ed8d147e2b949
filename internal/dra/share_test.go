// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"reslice.dev/internal/dra"
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
