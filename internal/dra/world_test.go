// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"reslice.dev/internal/cluster"
	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
)

const nodeName = "node-a"

// tb is what testing.TB and rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustModel(t tb, id string) *gpu.Model {
	t.Helper()
	m, err := models.ByID(id)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// oneGPU is GPU number i of a model, with MIG on where the model has it.
func oneGPU(i int, m *gpu.Model, policy dra.MIGPolicy, sharing dra.Sharing) dra.GPU {
	mode := gpu.MIGUnsupported
	if m.HasMIG() {
		mode = gpu.MIGDisabled
		if policy == dra.MIGOn {
			mode = gpu.MIGEnabled
		}
	}
	return dra.GPU{
		GPU: gpu.GPU{
			UUID: gpu.UUID(fmt.Sprintf("GPU-%08d", i)), Minor: i, Model: m, MIGMode: mode, Brand: "Nvidia",
			PCIBusID: fmt.Sprintf("0000:%02x:00.0", 0x10+i), PCIeRoot: fmt.Sprintf("pci0000:%02x", 0x10+i), NUMANode: i / 4,
		},
		Index: i, MIG: policy, Sharing: sharing,
	}
}

func nodeOf(gpus ...dra.GPU) dra.Node {
	return dra.Node{Name: nodeName, DriverVersion: "580.65.06", CUDADriverVersion: 13010, GPUs: gpus}
}

func mustPools(t tb, n dra.Node) []dra.Pool {
	t.Helper()
	pools, err := dra.Pools(n)
	if err != nil {
		t.Fatalf("pools: %v", err)
	}
	return pools
}

// ask is one request of a test, in terms that both the allocator and the
// reference model understand.
type ask struct {
	class   string
	profile string // label; empty for any
	start   int    // placement start; -1 for any
	memory  int64  // of a share; 0 asks for the whole device
	sms     int64  // of a share; 0 leaves the default
	clients int64  // of a share; 0 leaves the default
}

func (a ask) request(name string) resourceapi.DeviceRequest {
	exact := &resourceapi.ExactDeviceRequest{
		DeviceClassName: a.class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
	}
	expr := ""
	if a.profile != "" {
		expr = fmt.Sprintf(`device.attributes["gpu.reslice.dev"].?profile.orValue("") == %s`, strconv.Quote(a.profile))
	}
	if a.start >= 0 {
		expr += fmt.Sprintf(` && device.attributes["gpu.reslice.dev"].placementStart == %d`, a.start)
	}
	if expr != "" {
		exact.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expr}}}
	}
	asked := map[resourceapi.QualifiedName]resource.Quantity{}
	for name, n := range map[resourceapi.QualifiedName]int64{
		dra.CapMemory: a.memory, dra.CapMultiprocessors: a.sms, dra.CapClients: a.clients,
	} {
		if n > 0 {
			asked[name] = *resource.NewQuantity(n, resource.BinarySI)
		}
	}
	if len(asked) > 0 {
		exact.Capacity = &resourceapi.CapacityRequirements{Requests: asked}
	}
	return resourceapi.DeviceRequest{Name: name, Exactly: exact}
}

func claimOf(uid string, asks ...ask) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "default", UID: types.UID(uid)}}
	for i, a := range asks {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, a.request(fmt.Sprintf("r%d", i)))
	}
	return c
}

// whatIf is the scheduler's allocator over what a node publishes.
func whatIf(n dra.Node, pools []dra.Pool) *cluster.WhatIf {
	return cluster.NewWhatIf(cluster.StockFeatures, dra.ResourceSlices(n, pools), dra.DeviceClasses(""))
}

func allocate(t tb, w *cluster.WhatIf, claims ...*resourceapi.ResourceClaim) []resourceapi.AllocationResult {
	t.Helper()
	r, err := w.Allocate(context.Background(), cluster.NodeNamed(nodeName), claims...)
	if err != nil {
		t.Fatalf("allocator: %v", err)
	}
	return r
}

// held is an allocation of one device by name, as if the scheduler had made it.
func held(pool, device string) resourceapi.AllocationResult {
	return resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Driver: dra.DriverName, Pool: pool, Device: device}},
	}}
}

// deviceFor finds the published name of a partition.
func deviceFor(t tb, p dra.Pool, part gpu.Partition, shared bool) string {
	t.Helper()
	for name, d := range p.Devices {
		if d.Kind == dra.KindMIG && d.Partition == part && d.Shared == shared {
			return name
		}
	}
	t.Fatalf("pool %s publishes no device for %v", p.Name, part)
	return ""
}

func withMIG(t *testing.T) []*gpu.Model {
	t.Helper()
	var out []*gpu.Model
	for _, m := range models.All() {
		if m.HasMIG() {
			out = append(out, m)
		}
	}
	return out
}
