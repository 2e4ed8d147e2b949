// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/sim"
)

// Whatever is created and destroyed, node and law hold the same layout, and a
// node that starts again from the file is the same node.
func TestNodeAgreesWithTheLaw(t *testing.T) {
	boards := models.All()
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := t.Context()
		m := rapid.SampledFrom(boards).Filter((*gpu.Model).HasMIG).Draw(rt, "model")
		runs++
		// A file for few steps only: each change is synced to disk.
		cfg := sim.Config{State: newState(t, 1, true, m.ID)}
		steps := rapid.IntRange(1, 30).Draw(rt, "steps")
		onDisk := runs%10 == 0
		if onDisk {
			cfg.Path, steps = filepath.Join(dir, "state.json"), min(steps, 6)
			_ = os.Remove(cfg.Path)
		}
		n := newNode(t, cfg)
		id := firstGPU(t, n)
		layout, parts := gpu.NewLayout(m), m.Partitions()
		for range steps {
			p := rapid.SampledFrom(parts).Draw(rt, "partition")
			live, err := n.GPUInstances(ctx, id)
			if err != nil {
				rt.Fatal(err)
			}
			if layout.Has(p) {
				for _, in := range live {
					if in.Partition == p {
						if err := n.DestroyGPUInstance(ctx, id, in.ID); err != nil {
							rt.Fatal(err)
						}
					}
				}
				layout = layout.Without(p)
			} else {
				_, err := n.CreateGPUInstance(ctx, id, p)
				next, refused := layout.With(p)
				if (err == nil) != (refused == nil) {
					rt.Fatalf("%v into %v: node %v, law %v", p, layout, err, refused)
				}
				layout = next
			}
			if onDisk {
				n = newNode(t, sim.Config{Path: cfg.Path})
			}
			agree(rt, n, id, layout)
		}
	})
}

func agree(rt *rapid.T, n *sim.Node, id gpu.UUID, layout gpu.Layout) {
	s, err := n.State()
	if err != nil {
		rt.Fatal(err)
	}
	got := gpu.NewLayout(layout.Model())
	ids := map[int]bool{}
	for _, g := range s.GPUs {
		for _, in := range g.Instances {
			p := gpu.Partition{Profile: in.Profile, Placement: gpu.Placement{Start: in.Start, Size: in.Size}}
			if got, err = got.With(p); err != nil || g.UUID != id || ids[in.ID] {
				rt.Fatalf("illegal state: %v, id %d twice: %t", err, in.ID, ids[in.ID])
			}
			ids[in.ID] = true
		}
	}
	if got.Key() != layout.Key() {
		rt.Fatalf("node has %v, law has %v", got, layout)
	}
	data, err := s.Encode()
	if err != nil {
		rt.Fatal(err)
	}
	again, err := sim.ParseState(data)
	if err != nil {
		rt.Fatalf("own state is refused: %v", err)
	}
	if d := cmp.Diff(s, again, cmpopts.IgnoreUnexported(sim.State{}), cmpopts.EquateEmpty()); d != "" {
		rt.Fatalf("state changes on its way through the file: %s", d)
	}
}

func firstGPU(t testing.TB, n *sim.Node) gpu.UUID {
	t.Helper()
	gpus, err := n.GPUs(t.Context())
	if err != nil || len(gpus) == 0 {
		t.Fatalf("no GPU: %v", err)
	}
	return gpus[0].UUID
}

func TestTwoHandlesOnOneFileSeeEachOther(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "state.json")
	a := newNode(t, sim.Config{State: newState(t, 2, true, "h100-80gb"), Path: path})
	b := newNode(t, sim.Config{State: newState(t, 5, false, "t4-16gb"), Path: path, EventPoll: 1}) // the file wins
	id := firstGPU(t, b)
	events, err := b.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	gi := create(t, a, id, "3g.40gb", 4)
	if e := <-events; e.Kind != hardware.EventMIGChange || e.GPU != id || e.GI != gi.ID {
		t.Errorf("the other handle got %+v", e)
	}
	_, err = b.CreateGPUInstance(ctx, id, gi.Partition)
	if !errors.Is(err, hardware.ErrInsufficientResources) {
		t.Errorf("the other handle created it again: %v", err)
	}
	if err := b.DestroyGPUInstance(ctx, id, gi.ID); err != nil {
		t.Error(err)
	}
	if live, err := a.GPUInstances(ctx, id); err != nil || len(live) > 0 {
		t.Errorf("still there: %v %v", live, err)
	}
}

func TestManyWritersLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	first := newNode(t, sim.Config{State: newState(t, 1, true, "h100-80gb"), Path: path})
	id := firstGPU(t, first)
	done := make(chan error)
	for start := range 7 {
		go func() {
			n, err := sim.New(sim.Config{Path: path})
			if err == nil {
				_, err = n.CreateGPUInstance(t.Context(), id, gpu.Partition{Profile: 19, Placement: gpu.Placement{Start: start, Size: 1}})
			}
			done <- err
		}()
	}
	for range 7 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if live, err := first.GPUInstances(t.Context(), id); err != nil || len(live) != 7 {
		t.Errorf("%d instances of 7, %v", len(live), err)
	}
}

func create(t testing.TB, n *sim.Node, id gpu.UUID, profile string, start int) hardware.GPUInstance {
	t.Helper()
	gpus, err := n.GPUs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gpus {
		if g.UUID != id {
			continue
		}
		prof, ok := g.Model.ProfileByName(profile)
		if !ok {
			t.Fatalf("no profile %s", profile)
		}
		gi, err := n.CreateGPUInstance(t.Context(), id, gpu.Partition{
			Profile: prof.ID, Placement: gpu.Placement{Start: start, Size: prof.MemorySlices},
		})
		if err != nil {
			t.Fatal(err)
		}
		return gi
	}
	t.Fatalf("no GPU %s", id)
	return hardware.GPUInstance{}
}
