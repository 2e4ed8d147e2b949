// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"reslice.dev/internal/cluster"
	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
)

func node(t *testing.T) dra.Node {
	t.Helper()
	m, err := models.ByID("h100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	return dra.Node{Name: "node-a", GPUs: []dra.GPU{{
		GPU: gpu.GPU{UUID: "GPU-0", Model: m, MIGMode: gpu.MIGDisabled}, MIG: dra.MIGDynamic, Sharing: dra.SharingAll,
	}}}
}

func world(t *testing.T) *cluster.WhatIf {
	t.Helper()
	n := node(t)
	pools, err := dra.Pools(n)
	if err != nil {
		t.Fatal(err)
	}
	return cluster.NewWhatIf(cluster.StockFeatures, dra.ResourceSlices(n, pools), dra.DeviceClasses(""))
}

func claim(class, memory string) *resourceapi.ResourceClaim {
	exact := &resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
	}
	if memory != "" {
		exact.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
			dra.CapMemory: resource.MustParse(memory),
		}}
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", UID: "c"},
		Spec:       resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{{Name: "r", Exactly: exact}}}},
	}
}

func TestQuestionsChangeNothingUntilCommitted(t *testing.T) {
	w := world(t)
	ctx, at := context.Background(), cluster.NodeNamed("node-a")
	for range 3 {
		if r, err := w.Allocate(ctx, at, claim(dra.ClassGPU, "")); err != nil || r == nil {
			t.Fatalf("%v %v", r, err)
		}
	}
	r, _ := w.Allocate(ctx, at, claim(dra.ClassGPU, ""))
	w.Commit(r...)
	if again, err := w.Allocate(ctx, at, claim(dra.ClassGPU, "")); err != nil || again != nil {
		t.Fatalf("the GPU was given out twice: %v %v", again, err)
	}
	w.Release(r...)
	if again, err := w.Allocate(ctx, at, claim(dra.ClassGPU, "")); err != nil || again == nil {
		t.Fatalf("the GPU did not come back: %v %v", again, err)
	}
}

// TestTheLastShareFreesTheDevice: counters are charged by the first share and
// freed with the last.
func TestTheLastShareFreesTheDevice(t *testing.T) {
	w := world(t)
	ctx, at := context.Background(), cluster.NodeNamed("node-a")
	var shares [][]resourceapi.AllocationResult
	for range 2 {
		r, err := w.Allocate(ctx, at, claim(dra.ClassShare, "4Gi"))
		if err != nil || r == nil {
			t.Fatalf("%v %v", r, err)
		}
		w.Commit(r...)
		shares = append(shares, r)
	}
	for i, s := range shares {
		if r, err := w.Allocate(ctx, at, claim(dra.ClassGPU, "")); err != nil || r != nil {
			t.Fatalf("whole GPU beside %d shares: %v %v", 2-i, r, err)
		}
		w.Release(s...)
	}
	if r, err := w.Allocate(ctx, at, claim(dra.ClassGPU, "")); err != nil || r == nil {
		t.Fatalf("the GPU did not come back: %v %v", r, err)
	}
}

func TestAnotherNodeHasNothing(t *testing.T) {
	if r, err := world(t).Allocate(context.Background(), cluster.NodeNamed("node-b"), claim(dra.ClassGPU, "")); err != nil || r != nil {
		t.Fatalf("%v %v", r, err)
	}
}

func TestAWrongQuestionIsAnError(t *testing.T) {
	w := world(t)
	_, err := w.Allocate(context.Background(), cluster.NodeNamed("node-a"), claim("gpu", ""))
	if err == nil || !strings.Contains(err.Error(), `"gpu"`) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Allocate(ctx, cluster.NodeNamed("node-a"), claim(dra.ClassGPU, "")); err == nil {
		t.Error("no error after the context ended")
	}
}

func TestNewSlicesKeepWhatIsAllocated(t *testing.T) {
	w := world(t)
	ctx, at := context.Background(), cluster.NodeNamed("node-a")
	r, _ := w.Allocate(ctx, at, claim(dra.ClassMIG, ""))
	w.Commit(r...)
	n := node(t)
	n.GPUs[0].Order = n.GPUs[0].Model.Partitions()
	pools, err := dra.Pools(n)
	if err != nil {
		t.Fatal(err)
	}
	w.SetSlices(dra.ResourceSlices(n, pools))
	if r, err := w.Allocate(ctx, at, claim(dra.ClassGPU, "")); err != nil || r != nil {
		t.Fatalf("whole GPU over an instance: %v %v", r, err)
	}
}
