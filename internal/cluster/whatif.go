// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// StockFeatures are what kube-scheduler 1.37 hands its allocator when no
// feature gate is set. DRAFractionalCapacityRange is missing on purpose: it is
// on only where --min-compatibility-version is at least 1.37.
var StockFeatures = structured.Features{
	AdminAccess:            true,
	PrioritizedList:        true,
	PartitionableDevices:   true,
	DeviceTaints:           true,
	DeviceBindingAndStatus: true,
	ConsumableCapacity:     true,
}

// celCacheSize is how many compiled selectors a WhatIf keeps. The scheduler
// keeps 10; a planner asks about many classes in one go.
const celCacheSize = 512

// WhatIf answers allocation questions about a set of slices and classes held
// in memory. It remembers what was committed, as the scheduler remembers what
// it allocated. It changes nothing in a cluster. Not safe for concurrent use.
type WhatIf struct {
	features structured.Features
	classes  classLister
	slices   []*resourceapi.ResourceSlice
	state    structured.AllocatedState
	cache    *cel.Cache
	// allocator is kept until the state or the slices change: it sorts every
	// slice when it is made, and remembers the pools that it has gathered.
	allocator structured.Allocator
}

// NewWhatIf returns a WhatIf with nothing allocated. Slices and classes are
// read, never changed, and must not change while the WhatIf is in use.
func NewWhatIf(features structured.Features, slices []*resourceapi.ResourceSlice, classes []*resourceapi.DeviceClass) *WhatIf {
	w := &WhatIf{
		features: features,
		classes:  classLister{},
		slices:   slices,
		state: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
		cache: cel.NewCache(celCacheSize, cel.Features{EnableConsumableCapacity: features.ConsumableCapacity}),
	}
	for _, c := range classes {
		w.classes[c.Name] = c
	}
	return w
}

// SetSlices replaces the published slices and keeps what is allocated.
func (w *WhatIf) SetSlices(slices []*resourceapi.ResourceSlice) {
	w.slices, w.allocator = slices, nil
}

// Allocate asks where the claims would go on a node, all together. The results
// are in the order of the claims; nil means that they do not fit. An error
// means that the question is wrong (an unknown class, a selector that does not
// compile) or that the context ended. Nothing is committed.
func (w *WhatIf) Allocate(ctx context.Context, node *corev1.Node, claims ...*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if w.allocator == nil {
		a, err := structured.NewAllocator(ctx, w.features, w.state, w.classes, w.slices, w.cache)
		if err != nil {
			return nil, fmt.Errorf("set up the scheduler's allocator: %w", err)
		}
		w.allocator = a
	}
	results, err := w.allocator.Allocate(ctx, node, claims)
	if err != nil {
		return nil, fmt.Errorf("allocate %d claim(s) on node %s: %w", len(claims), node.Name, err)
	}
	return results, nil
}

// Commit records allocations, so that later questions see them as taken.
func (w *WhatIf) Commit(results ...resourceapi.AllocationResult) {
	w.fold(results, true)
}

// Release takes committed allocations back.
func (w *WhatIf) Release(results ...resourceapi.AllocationResult) {
	w.fold(results, false)
}

// fold keeps the state as the scheduler's plugin does: exclusive devices by
// id, shares by share id and by what they consume. Devices held with admin
// access count as free.
func (w *WhatIf) fold(results []resourceapi.AllocationResult, add bool) {
	w.allocator = nil
	for _, r := range results {
		for _, d := range r.Devices.Results {
			if d.AdminAccess != nil && *d.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(d.Driver, d.Pool, d.Device)
			switch {
			case d.ShareID == nil && add:
				w.state.AllocatedDevices.Insert(id)
			case d.ShareID == nil:
				w.state.AllocatedDevices.Delete(id)
			case add:
				w.state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, d.ShareID))
				w.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, d.ConsumedCapacity))
			default:
				w.state.AllocatedSharedDeviceIDs.Delete(structured.MakeSharedDeviceID(id, d.ShareID))
				w.state.AggregatedCapacity.Remove(structured.NewDeviceConsumedCapacity(id, d.ConsumedCapacity))
			}
		}
	}
}

// NodeNamed is a node with nothing but a name: enough for slices that name
// their node.
func NodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// classLister serves the classes from memory.
type classLister map[string]*resourceapi.DeviceClass

// List returns every class.
func (l classLister) List() ([]*resourceapi.DeviceClass, error) {
	out := make([]*resourceapi.DeviceClass, 0, len(l))
	for _, c := range l {
		out = append(out, c)
	}
	return out, nil
}

// Get returns a class by name.
func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	if c, ok := l[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("DeviceClass %q does not exist", name)
}
