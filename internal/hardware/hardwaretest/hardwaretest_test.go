// SPDX-License-Identifier: Apache-2.0

package hardwaretest_test

import (
	"context"
	"testing"
	"time"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/hardwaretest"
	"reslice.dev/internal/hardware/sim"
)

func node(t *testing.T) hardware.Node {
	t.Helper()
	s, err := sim.NewState([]string{"h100-80gb", "a30-24gb", "t4-16gb"}, 3, "node-a", true)
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.New(sim.Config{State: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// Each of these breaks one promise of a good node.
type (
	swallowsErrors     struct{ hardware.Node }
	forgetsOverlap     struct{ hardware.Node }
	destroysBusy       struct{ hardware.Node }
	freshUUID          struct{ hardware.Node }
	switchesAtOnce     struct{ hardware.Node }
	idleUnderMIG       struct{ hardware.Node }
	brokenTable        struct{ hardware.Node }
	ignoresCancel      struct{ hardware.Node }
	leaksEvents        struct{ hardware.Node }
	wrongCapabilities  struct{ hardware.Node }
	movesPlacement     struct{ hardware.Node }
	overcommitsMemory  struct{ hardware.Node }
	forgetsComputeMode struct{ hardware.Node }
	silentAboutChanges struct{ hardware.Node }
	forgetsBoot        struct {
		hardware.Node
		n *int
	}
)

func (swallowsErrors) Processes(context.Context, gpu.UUID) ([]hardware.Process, error) {
	return nil, nil
}

func (b forgetsOverlap) CreateGPUInstance(ctx context.Context, id gpu.UUID, p gpu.Partition) (hardware.GPUInstance, error) {
	gi, err := b.Node.CreateGPUInstance(ctx, id, p)
	if err != nil && p.Profile != 9999 {
		return hardware.GPUInstance{Partition: p}, nil
	}
	return gi, err
}

func (b destroysBusy) DestroyGPUInstance(ctx context.Context, id gpu.UUID, gi int) error {
	_ = b.DestroyComputeInstance(ctx, id, gi, 0)
	return b.Node.DestroyGPUInstance(ctx, id, gi)
}

func (freshUUID) MIGUUID(context.Context, gpu.UUID, int, int) (gpu.UUID, error) {
	return "MIG-11111111-1111-1111-1111-111111111111", nil
}

func (b switchesAtOnce) SetMIGMode(ctx context.Context, id gpu.UUID, on bool) (hardware.Activation, error) {
	a, err := b.Node.SetMIGMode(ctx, id, on)
	if err == nil {
		a = hardware.ActivationDone
	}
	return a, err
}

func (b idleUnderMIG) Utilization(context.Context, gpu.UUID) (hardware.Utilization, error) {
	return hardware.Utilization{GPU: hardware.Valid(0), Memory: hardware.Valid(0)}, nil
}

func (b brokenTable) GPUs(ctx context.Context) ([]gpu.GPU, error) {
	gpus, err := b.Node.GPUs(ctx)
	for i := range gpus {
		m := *gpus[i].Model
		m.MemorySlices = 1
		gpus[i].Model = &m
	}
	return gpus, err
}

func (b ignoresCancel) GPUs(ctx context.Context) ([]gpu.GPU, error) {
	return b.Node.GPUs(context.WithoutCancel(ctx))
}

func (b leaksEvents) Events(context.Context) (<-chan hardware.Event, error) {
	return make(chan hardware.Event), nil
}

func (b wrongCapabilities) CapabilityMinors(ctx context.Context, id gpu.UUID, gi, ci int) (hardware.CapabilityMinors, error) {
	m, err := b.Node.CapabilityMinors(ctx, id, gi, ci)
	m.CI++
	return m, err
}

func (b movesPlacement) CreateGPUInstance(ctx context.Context, id gpu.UUID, p gpu.Partition) (hardware.GPUInstance, error) {
	if p.Placement.Start > 0 {
		p.Placement.Start = 0
	}
	return b.Node.CreateGPUInstance(ctx, id, p)
}

func (b overcommitsMemory) Memory(ctx context.Context, of hardware.Instance) (hardware.Memory, error) {
	m, err := b.Node.Memory(ctx, of)
	m.UsedBytes = m.TotalBytes + 1
	return m, err
}

func (forgetsComputeMode) SetComputeMode(_ context.Context, _ gpu.UUID, m hardware.ComputeMode) error {
	if m == "no such mode" {
		return hardware.ErrInvalid
	}
	return nil
}

func (b silentAboutChanges) Events(ctx context.Context) (<-chan hardware.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	out := make(chan hardware.Event)
	go func() {
		defer cancel()
		<-ctx.Done()
		close(out)
	}()
	return out, nil
}

func (b forgetsBoot) BootID(context.Context) (string, error) {
	*b.n++
	return string(rune('a' + *b.n)), nil
}

func TestSuiteFindsOutBrokenNodes(t *testing.T) {
	for check, broken := range map[string]func(hardware.Node) hardware.Node{
		"unknown GPU":                 func(n hardware.Node) hardware.Node { return swallowsErrors{n} },
		"refusals agree with the law": func(n hardware.Node) hardware.Node { return forgetsOverlap{n} },
		"every partition":             func(n hardware.Node) hardware.Node { return destroysBusy{n} },
		"unknown instance":            func(n hardware.Node) hardware.Node { return freshUUID{n} },
		"MIG mode rules":              func(n hardware.Node) hardware.Node { return switchesAtOnce{n} },
		"utilization":                 func(n hardware.Node) hardware.Node { return idleUnderMIG{n} },
		"inventory":                   func(n hardware.Node) hardware.Node { return brokenTable{n} },
		"cancelled context":           func(n hardware.Node) hardware.Node { return ignoresCancel{n} },
		"events end with the context": func(n hardware.Node) hardware.Node { return leaksEvents{n} },
		"memory":                      func(n hardware.Node) hardware.Node { return overcommitsMemory{n} },
		"compute mode":                func(n hardware.Node) hardware.Node { return forgetsComputeMode{n} },
		"events tell of MIG changes":  func(n hardware.Node) hardware.Node { return silentAboutChanges{n} },
		"driver":                      func(n hardware.Node) hardware.Node { return forgetsBoot{n, new(int)} },
	} {
		t.Run(check, func(t *testing.T) { mustFail(t, check, broken(node(t))) })
	}
	t.Run("UUID changes", func(t *testing.T) { mustFail(t, "every partition", freshUUID{node(t)}) })
	t.Run("capability minors", func(t *testing.T) { mustFail(t, "every partition", wrongCapabilities{node(t)}) })
	t.Run("placement moves", func(t *testing.T) { mustFail(t, "every partition", movesPlacement{node(t)}) })
	t.Run("placement ignored", func(t *testing.T) { mustFail(t, "impossible partitions", movesPlacement{node(t)}) })
}

func mustFail(t *testing.T, check string, n hardware.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for _, c := range hardwaretest.Checks() {
		if c.Name != check {
			continue
		}
		if err := c.Run(ctx, n); err == nil {
			t.Errorf("check %q passes a node that breaks it", check)
		}
		return
	}
	t.Fatalf("no check %q", check)
}
