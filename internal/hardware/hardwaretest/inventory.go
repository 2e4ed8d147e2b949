// SPDX-License-Identifier: Apache-2.0

package hardwaretest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// nobody is a UUID that no GPU has.
const nobody gpu.UUID = "GPU-00000000-0000-0000-0000-000000000000"

func checkDriver(ctx context.Context, n hardware.Node) error {
	var p problems
	d, err := n.Driver(ctx)
	p.add(err)
	if err == nil && (d.Major() < 400 || d.CUDA < 10000) {
		p.add(fmt.Errorf("driver %q with CUDA %d is no driver that has MIG", d.Version, d.CUDA))
	}
	first, err := n.BootID(ctx)
	p.add(err)
	again, err := n.BootID(ctx)
	p.add(err)
	if first == "" || first != again {
		p.add(fmt.Errorf("boot id %q, then %q: must be stable and not empty", first, again))
	}
	return p.err()
}

func checkInventory(ctx context.Context, n hardware.Node) error {
	var p problems
	gpus, err := n.GPUs(ctx)
	if err != nil {
		return err
	}
	hidden, err := n.Hidden(ctx)
	p.add(err)
	if len(gpus)+len(hidden) == 0 {
		p.add(errors.New("no GPU, visible or hidden"))
	}
	uuids, minors, last := map[gpu.UUID]bool{}, map[int]bool{}, ""
	for _, g := range gpus {
		p.add(wellFormed(g))
		if uuids[g.UUID] || minors[g.Minor] || g.PCIBusID <= last {
			p.add(fmt.Errorf("%s: UUID and minor must be unique, PCI bus ids ascend", g.UUID))
		}
		uuids[g.UUID], minors[g.Minor], last = true, true, g.PCIBusID
	}
	for _, h := range hidden {
		if h.Reason == "" || uuids[h.UUID] {
			p.add(fmt.Errorf("hidden GPU %s %s: needs a reason and must not be visible too", h.UUID, h.PCIBusID))
		}
	}
	again, err := n.GPUs(ctx)
	p.add(err)
	if !reflect.DeepEqual(gpus, again) {
		p.add(errors.New("a second reading differs from the first"))
	}
	return p.err()
}

func wellFormed(g gpu.GPU) error {
	if err := wellFormedPlace(g); err != nil {
		return err
	}
	switch {
	case !strings.HasPrefix(string(g.UUID), "GPU-"):
		return fmt.Errorf("UUID %q must begin with GPU-", g.UUID)
	case g.Model == nil:
		return fmt.Errorf("%s: no model", g.UUID)
	case g.MIGMode != gpu.MIGUnsupported && g.VGPUGuest:
		return fmt.Errorf("%s: a vGPU guest with MIG", g.UUID)
	case g.MIGMode != gpu.MIGUnsupported && !g.Model.HasMIG():
		return fmt.Errorf("%s: MIG mode %q but no profiles", g.UUID, g.MIGMode)
	case g.Model.Architecture == "" || g.Model.ProductName == "" || g.Model.ComputeCapability == "":
		return fmt.Errorf("%s: architecture, product name or compute capability is missing", g.UUID)
	}
	if err := g.Model.Validate(); err != nil {
		return fmt.Errorf("%s: %w", g.UUID, err)
	}
	return nil
}

// wellFormedPlace checks where a GPU says that it is in the machine.
func wellFormedPlace(g gpu.GPU) error {
	switch {
	case g.Minor < 0:
		return fmt.Errorf("%s: minor %d", g.UUID, g.Minor)
	case len(g.PCIBusID) < len("0000:17:00.0") || g.PCIBusID != strings.ToLower(g.PCIBusID):
		return fmt.Errorf("%s: PCI bus id %q, must look like 0000:17:00.0", g.UUID, g.PCIBusID)
	case g.PCIeRoot != "" && !strings.HasPrefix(g.PCIeRoot, "pci"):
		return fmt.Errorf("%s: PCIe root %q, must look like pci0000:17", g.UUID, g.PCIeRoot)
	case g.NUMANode < -1:
		return fmt.Errorf("%s: NUMA node %d", g.UUID, g.NUMANode)
	}
	return nil
}

// expect says whether err is the sentinel and names the call.
func expect(what string, err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: got %w, want %w", what, err, want)
	}
	var e *hardware.Error
	if !errors.As(err, &e) || e.Call == "" {
		return fmt.Errorf("%s: %w does not say which call failed (no *hardware.Error)", what, err)
	}
	return nil
}

// calls runs every method that takes a GPU, except the ones that change it.
func calls(ctx context.Context, n hardware.Node, id gpu.UUID) map[hardware.Method]error {
	out := map[hardware.Method]error{}
	_, out[hardware.MethodMIGMode] = n.MIGMode(ctx, id)
	_, out[hardware.MethodGPUInstances] = n.GPUInstances(ctx, id)
	_, out[hardware.MethodMemory] = n.Memory(ctx, hardware.Whole(id))
	_, out[hardware.MethodUtilization] = n.Utilization(ctx, id)
	_, out[hardware.MethodProcesses] = n.Processes(ctx, id)
	_, out[hardware.MethodComputeMode] = n.ComputeMode(ctx, id)
	_, out[hardware.MethodHealth] = n.Health(ctx, id)
	return out
}

func checkUnknownGPU(ctx context.Context, n hardware.Node) error {
	var p problems
	for method, err := range calls(ctx, n, nobody) {
		p.add(expect(string(method), err, hardware.ErrNotFound))
	}
	_, err := n.SetMIGMode(ctx, nobody, true)
	p.add(expect("SetMIGMode", err, hardware.ErrNotFound))
	_, err = n.CreateGPUInstance(ctx, nobody, gpu.Partition{})
	p.add(expect("CreateGPUInstance", err, hardware.ErrNotFound))
	p.add(expect("DestroyGPUInstance", n.DestroyGPUInstance(ctx, nobody, 0), hardware.ErrNotFound))
	_, err = n.CreateComputeInstance(ctx, nobody, 0)
	p.add(expect("CreateComputeInstance", err, hardware.ErrNotFound))
	p.add(expect("DestroyComputeInstance", n.DestroyComputeInstance(ctx, nobody, 0, 0), hardware.ErrNotFound))
	_, err = n.MIGUUID(ctx, nobody, 0, 0)
	p.add(expect("MIGUUID", err, hardware.ErrNotFound))
	_, err = n.CapabilityMinors(ctx, nobody, 0, 0)
	p.add(expect("CapabilityMinors", err, hardware.ErrNotFound))
	return p.err()
}

func checkCancelled(ctx context.Context, n hardware.Node) error {
	var p problems
	done, cancel := context.WithCancel(ctx)
	cancel()
	for method, err := range calls(done, n, nobody) {
		if !errors.Is(err, context.Canceled) {
			p.add(fmt.Errorf("%s with a cancelled context: %w", method, err))
		}
	}
	_, err := n.GPUs(done)
	if !errors.Is(err, context.Canceled) {
		p.add(fmt.Errorf("GPUs with a cancelled context: %w", err))
	}
	return p.err()
}

// each runs a check on every visible GPU.
func each(ctx context.Context, n hardware.Node, fn func(gpu.GPU) error) error {
	gpus, err := n.GPUs(ctx)
	if err != nil {
		return err
	}
	var p problems
	for _, g := range gpus {
		if err := fn(g); err != nil {
			p.add(fmt.Errorf("%s (%s): %w", g.UUID, g.Model.ID, err))
		}
	}
	return p.err()
}
