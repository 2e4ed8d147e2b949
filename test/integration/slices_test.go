// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
)

var (
	policies = []dra.MIGPolicy{dra.MIGAuto, dra.MIGOff, dra.MIGOn, dra.MIGDynamic}
	sharings = []dra.Sharing{dra.SharingNone, dra.SharingGPU, dra.SharingMIG, dra.SharingAll}
)

// One invalid device loses a whole slice, and only the server knows all the
// rules: so everything that a node can publish is created here.
var _ = Describe("what a node publishes", func() {
	for _, m := range models.All() {
		It(fmt.Sprintf("is stored as it is for %s in every MIG mode and sharing setting", m.ID), func(ctx SpecContext) {
			for _, mode := range modesOf(m) {
				for _, policy := range policies {
					for _, sharing := range sharings {
						expectStored(ctx, nodeWith(gpuWith(0, m, mode, policy, sharing)))
					}
				}
			}
		})
	}

	It("is stored for whole GPUs of odd memory sizes", func(ctx SpecContext) {
		base, err := models.ByID("l4-24gb")
		Expect(err).NotTo(HaveOccurred())
		for _, mib := range []int64{81559, 24564, 15360, 97887, 257, 256, 255, 1, 0} {
			m := *base
			m.MemoryBytes = mib << 20
			expectStored(ctx, nodeWith(gpuWith(0, &m, gpu.MIGUnsupported, dra.MIGAuto, dra.SharingAll)))
		}
	})

	It("is stored with taints and with devices that only their holders keep", func(ctx SpecContext) {
		m, err := models.ByID("h100-80gb")
		Expect(err).NotTo(HaveOccurred())
		g := gpuWith(0, m, gpu.MIGEnabled, dra.MIGOff, dra.SharingNone)
		for _, p := range m.Partitions() {
			g.Held = append(g.Held, dra.Held{Kind: dra.KindMIG, Partition: p}, dra.Held{Kind: dra.KindMIG, Partition: p, Shared: true})
		}
		for i := range 20 {
			g.Taints = append(g.Taints, dra.Taint{Reason: fmt.Sprintf("r%d", i), Value: "x", Effect: resourceapi.DeviceTaintEffectNone})
		}
		expectStored(ctx, nodeWith(g))
	})

	It("is stored for a node of sixteen GPUs of mixed models", func(ctx SpecContext) {
		var gpus []dra.GPU
		for i := range 16 {
			m := models.All()[i%len(models.All())]
			modes := modesOf(m)
			gpus = append(gpus, gpuWith(i, m, modes[i%len(modes)], policies[i%4], sharings[i/4]))
		}
		expectStored(ctx, nodeWith(gpus...))
	})
})

var _ = Describe("the DeviceClasses", func() {
	It("are stored as they are", func(ctx SpecContext) {
		for _, class := range dra.DeviceClasses("") {
			want := class.DeepCopy()
			Expect(k8sClient.Create(ctx, class)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(k8sClient.Delete(ctx, class)).To(Succeed()) })
			Expect(class.Spec).To(Equal(want.Spec))
		}
	})
})

func modesOf(m *gpu.Model) []gpu.MIGMode {
	if !m.HasMIG() {
		return []gpu.MIGMode{gpu.MIGUnsupported}
	}
	return []gpu.MIGMode{gpu.MIGUnsupported, gpu.MIGDisabled, gpu.MIGEnabled}
}

func gpuWith(index int, m *gpu.Model, mode gpu.MIGMode, policy dra.MIGPolicy, sharing dra.Sharing) dra.GPU {
	return dra.GPU{
		GPU: gpu.GPU{
			UUID: gpu.UUID(fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", index)), Model: m, MIGMode: mode, Brand: "Nvidia",
			PCIBusID: fmt.Sprintf("0000:%02x:00.0", 16+index), PCIeRoot: fmt.Sprintf("pci0000:%02x", 16+index),
			NUMANode: index / 8, AddressingMode: "HMM",
		},
		Index: index, MIG: policy, Sharing: sharing, Tier: "training",
	}
}

func nodeWith(gpus ...dra.GPU) dra.Node {
	return dra.Node{Name: "node-a", DriverVersion: "580.65.06", CUDADriverVersion: 13010, GPUs: gpus}
}

// expectStored creates a node's slices and compares what the server kept: a
// server with a feature off drops fields without a word.
func expectStored(ctx SpecContext, n dra.Node) {
	GinkgoHelper()
	pools, err := dra.Pools(n)
	Expect(err).NotTo(HaveOccurred())
	for _, slice := range dra.ResourceSlices(n, pools) {
		want := slice.DeepCopy()
		Expect(k8sClient.Create(ctx, slice)).To(Succeed())
		stored := &resourceapi.ResourceSlice{}
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(slice), stored)).To(Succeed())
		for i := range stored.Spec.Devices { // the server sets the time of a taint
			for j := range stored.Spec.Devices[i].Taints {
				stored.Spec.Devices[i].Taints[j].TimeAdded = nil
			}
		}
		Expect(equality.Semantic.DeepEqual(want.Spec, stored.Spec)).To(BeTrue(), "%s came back different", slice.Name)
		Expect(k8sClient.Delete(ctx, slice)).To(Succeed())
	}
}
