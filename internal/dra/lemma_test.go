// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"context"
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"reslice.dev/internal/cluster"
	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
)

// atLeast asks for a slice with so much memory.
func atLeast(uid string, memory int64) *resourceapi.ResourceClaim {
	c := claimOf(uid, ask{class: dra.ClassSlice, start: -1})
	c.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: fmt.Sprintf(`device.capacity["gpu.reslice.dev"].memory.compareTo(quantity("%d")) >= 0`, memory),
	}}}
	return c
}

// memoryOf is the memory of what an allocation gives.
func memoryOf(pools []dra.Pool, m *gpu.Model, r resourceapi.AllocationResult) int64 {
	for _, p := range pools {
		if d, ok := p.Devices[r.Devices.Results[0].Device]; ok && p.Name == r.Devices.Results[0].Pool {
			if d.Kind == dra.KindGPU {
				return m.MemoryBytes
			}
			prof, _ := m.Profile(d.Partition.Profile)
			return prof.MemoryBytes
		}
	}
	return 0
}

// TestASliceIsTheSmallestThatServes is the lemma in use: on a node of equal
// GPUs in MIG mode, whatever runs there and whatever is tainted, the scheduler
// goes GPU by GPU and still hands out no more memory than the smallest profile
// that serves the request. A taint covers everything that overlaps the faulty
// placement, so it makes no exception.
func TestASliceIsTheSmallestThatServes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := mustModel(t, rapid.SampledFrom([]string{"h100-80gb", "a100-40gb", "h200-141gb", "a30-24gb", "rtxpro6000-96gb"}).Draw(t, "model"))
		var gpus []dra.GPU
		for i := range rapid.IntRange(1, 3).Draw(t, "GPUs") {
			g := oneGPU(i, m, dra.MIGOn, dra.SharingNone)
			if rapid.IntRange(0, 3).Draw(t, "fault") == 0 {
				at := rapid.SampledFrom(m.Partitions()).Draw(t, "faulty").Placement
				g.Taints = []dra.Taint{{Reason: "test", Effect: resourceapi.DeviceTaintEffectNoSchedule, On: &at}}
			}
			gpus = append(gpus, g)
		}
		n := nodeOf(gpus...)
		pools := mustPools(t, n)
		w := whatIf(n, pools)
		var live []resourceapi.AllocationResult
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			if len(live) > 0 && rapid.IntRange(0, 2).Draw(t, "end one") == 0 {
				k := rapid.IntRange(0, len(live)-1).Draw(t, "ends")
				w.Release(live[k])
				live = append(live[:k], live[k+1:]...)
				continue
			}
			want := rapid.Int64Range(1, m.Profiles[len(m.Profiles)-1].MemoryBytes).Draw(t, "memory")
			res := allocate(t, w, atLeast(fmt.Sprint("c", i), want))
			if res == nil {
				continue
			}
			smallest := int64(0)
			for _, p := range m.Profiles {
				if p.MemoryBytes >= want && (smallest == 0 || p.MemoryBytes < smallest) {
					smallest = p.MemoryBytes
				}
			}
			if got := memoryOf(pools, m, res[0]); got != smallest {
				t.Fatalf("%d bytes asked, %d given, %d would do", want, got, smallest)
			}
			w.Commit(res...)
			live = append(live, res...)
		}
	})
}

// TestTheExceptionsOfTheLemmaAreReal shows both cases in which a claim gets
// more than the smallest that would serve, so that nobody relies on the lemma
// there.
func TestTheExceptionsOfTheLemmaAreReal(t *testing.T) {
	t.Run("mixed models: the first GPU wins, whatever the next one has", func(t *testing.T) {
		a30, h100 := mustModel(t, "a30-24gb"), mustModel(t, "h100-80gb")
		n := nodeOf(oneGPU(0, a30, dra.MIGOn, dra.SharingNone), oneGPU(1, h100, dra.MIGOn, dra.SharingNone))
		pools := mustPools(t, n)
		res := allocate(t, whatIf(n, pools), atLeast("c", 6<<30))
		if got, less := memoryOf(pools, a30, res[0]), h100.Profiles[0].MemoryBytes; got <= less || less < 6<<30 {
			t.Errorf("given %d, the other GPU had %d", got, less)
		}
	})
	t.Run("engines: a bigger plain profile, where the media engine of the small one is taken", func(t *testing.T) {
		m := mustModel(t, "h100-80gb")
		n := nodeOf(oneGPU(0, m, dra.MIGOn, dra.SharingNone))
		pools := mustPools(t, n)
		w := whatIf(n, pools)
		w.Commit(allocate(t, w, claimOf("a", ask{class: dra.ClassMIG, profile: "1g.10gb+me", start: 0}))...)
		if allocate(t, w, claimOf("b", ask{class: dra.ClassMIG, profile: "1g.10gb+me", start: -1})) != nil {
			t.Error("two +me on one GPU")
		}
		if allocate(t, w, claimOf("c", ask{class: dra.ClassMIG, profile: "2g.20gb", start: -1})) == nil {
			t.Error("2g does not fit beside +me")
		}
	})
}

// TestClaimsOfOnePodAreAllocatedTogether: what fits one by one in the wrong
// order must still fit together, and what cannot fit together must not.
func TestClaimsOfOnePodAreAllocatedTogether(t *testing.T) {
	n := nodeOf(oneGPU(0, mustModel(t, "h100-80gb"), dra.MIGOn, dra.SharingNone))
	w := whatIf(n, mustPools(t, n))
	mig := func(profile string) ask { return ask{class: dra.ClassMIG, profile: profile, start: -1} }
	for _, tc := range []struct {
		claims []*resourceapi.ResourceClaim
		fit    bool
	}{
		{[]*resourceapi.ResourceClaim{claimOf("a", mig("3g.40gb")), claimOf("b", mig("4g.40gb"))}, true},
		{[]*resourceapi.ResourceClaim{claimOf("a", mig("4g.40gb")), claimOf("b", mig("4g.40gb"))}, false},
		{[]*resourceapi.ResourceClaim{claimOf("a", mig("1g.10gb"), mig("1g.10gb")), claimOf("b", mig("2g.20gb")), claimOf("c", mig("3g.40gb"))}, true},
	} {
		res, err := w.Allocate(context.Background(), cluster.NodeNamed(nodeName), tc.claims...)
		if err != nil || (res != nil) != tc.fit {
			t.Errorf("%d claims: fit %v, %v", len(tc.claims), res != nil, err)
		}
	}
	for count, fit := range map[int64]bool{7: true, 8: false} {
		c := claimOf("n", mig("1g.10gb"))
		c.Spec.Devices.Requests[0].Exactly.Count = count
		if got := allocate(t, w, c) != nil; got != fit {
			t.Errorf("%d x 1g: fits %v", count, got)
		}
	}
}
