// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	driver = "gpu.reslice.dev"
	pool   = "node-a/gpu-00"
)

// These specs are about the harness itself: were it not a real server of the
// expected version, the specs beside this file would prove nothing.
var _ = Describe("the API server", func() {
	It("is the version that test/cluster requires", func() {
		discoverer, err := discovery.NewDiscoveryClientForConfig(restConfig)
		Expect(err).NotTo(HaveOccurred())
		version, err := discoverer.ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(version.GitVersion).To(HavePrefix("v1.37."))
	})

	It("stores counters and the devices that consume them", func(ctx SpecContext) {
		counters := counterSlice("accepted-counters")
		create(ctx, counters)
		devices := deviceSlice("accepted-devices", 1)
		create(ctx, devices)

		stored := &resourceapi.ResourceSlice{}
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(devices), stored)).To(Succeed())
		// A server with the feature off would drop this field without a word.
		Expect(stored.Spec.Devices).To(HaveLen(1))
		Expect(stored.Spec.Devices[0].ConsumesCounters).To(HaveLen(1))
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(counters), stored)).To(Succeed())
		Expect(stored.Spec.SharedCounters).To(HaveLen(1))
	})

	It("refuses a slice with one device too many", func(ctx SpecContext) {
		most := resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
		create(ctx, deviceSlice("most-devices", most))

		err := k8sClient.Create(ctx, deviceSlice("too-many-devices", most+1))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "got %v", err)
		Expect(err).To(MatchError(ContainSubstring("spec.devices")))
	})
})

// create creates the slice and removes it after the spec.
func create(ctx SpecContext, slice *resourceapi.ResourceSlice) {
	GinkgoHelper()
	Expect(k8sClient.Create(ctx, slice)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, slice))).To(Succeed())
	})
}

func counterSlice(name string) *resourceapi.ResourceSlice {
	slice := emptySlice(name)
	slice.Spec.SharedCounters = []resourceapi.CounterSet{{
		Name:     "gpu-00",
		Counters: map[string]resourceapi.Counter{"memory-slice-0": {Value: resource.MustParse("1")}},
	}}
	return slice
}

func deviceSlice(name string, devices int) *resourceapi.ResourceSlice {
	slice := emptySlice(name)
	for i := range devices {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
			Name: fmt.Sprintf("gpu-00-mig-19-%d", i),
			ConsumesCounters: []resourceapi.DeviceCounterConsumption{{
				CounterSet: "gpu-00",
				Counters:   map[string]resourceapi.Counter{"memory-slice-0": {Value: resource.MustParse("1")}},
			}},
		})
	}
	return slice
}

func emptySlice(name string) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			Pool:     resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 2},
			NodeName: ptr.To("node-a"),
		},
	}
}
