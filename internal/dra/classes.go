// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of the DeviceClasses that Reslice ships. The class is how a user
// chooses the isolation level: the first three are exclusive.
const (
	// ClassGPU: a whole GPU.
	ClassGPU = "gpu.reslice.dev"
	// ClassMIG: one MIG instance.
	ClassMIG = "mig.reslice.dev"
	// ClassSlice: the smallest device that passes the selectors, of the first
	// GPU that has one.
	ClassSlice = "slice.reslice.dev"
	// ClassShare: a share of a GPU or MIG instance.
	ClassShare = "share.reslice.dev"
	// ClassMonitor: read access to a GPU for monitoring, adminAccess only.
	ClassMonitor = "monitor.reslice.dev"
)

// DeviceClasses returns the classes for a driver name (empty means
// [DriverName]). Every class names the driver first, so that devices of other
// drivers, which lack the attributes, are never looked at.
func DeviceClasses(driver string) []*resourceapi.DeviceClass {
	if driver == "" {
		driver = DriverName
	}
	attr := fmt.Sprintf("device.attributes[%q]", driver)
	exclusive := fmt.Sprintf(" && %s.sharing == %q", attr, SharedExclusive)
	isType := func(t string) string { return fmt.Sprintf("%s.type == %q", attr, t) }
	notMonitor := fmt.Sprintf("%s.type != %q", attr, TypeMonitor)
	var out []*resourceapi.DeviceClass
	for _, c := range []struct{ name, expr string }{
		{ClassGPU, isType(TypeGPU) + exclusive},
		{ClassMIG, isType(TypeMIG) + exclusive},
		{ClassSlice, notMonitor + exclusive},
		{ClassShare, notMonitor + fmt.Sprintf(" && %s.sharing != %q", attr, SharedExclusive)},
		{ClassMonitor, isType(TypeMonitor)},
	} {
		out = append(out, &resourceapi.DeviceClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "DeviceClass"},
			ObjectMeta: metav1.ObjectMeta{Name: c.name},
			Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{
				CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q && %s", driver, c.expr)},
			}}},
		})
	}
	return out
}
