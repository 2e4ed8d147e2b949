// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/sim"
	"reslice.dev/internal/plugin"
)

func simNode(t *testing.T, fault sim.FaultInjector, models ...string) hardware.Node {
	t.Helper()
	state, err := sim.NewState(models, len(models), "node-a", true)
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.New(sim.Config{State: state, Fault: fault})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestDiscoveryJoinsHardwareAndSettings(t *testing.T) {
	hw := simNode(t, nil, "h100-80gb", "t4-16gb")
	n, err := plugin.Discover(context.Background(), hw, plugin.Config{
		NodeName: "node-a", MIG: dra.MIGDynamic, Sharing: dra.SharingAll, Mix: "1g=1,whole=1", Tier: "large",
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(n.GPUs) != 2 || n.DriverVersion == "" || n.CUDADriverVersion == 0 {
		t.Fatalf("%+v", n)
	}
	for i, g := range n.GPUs {
		if g.Index != i || g.MIG != dra.MIGDynamic || g.Sharing != dra.SharingAll || g.Tier != "large" || (g.Mix != nil) != g.Model.HasMIG() {
			t.Errorf("GPU %d: %+v", i, g)
		}
	}
}

func TestAnAutomaticPolicyIsFixedAtDiscovery(t *testing.T) {
	n, err := plugin.Discover(context.Background(), simNode(t, nil, "h100-80gb", "t4-16gb"), plugin.Config{NodeName: "node-a"})
	if err != nil {
		t.Fatal(err)
	}
	if n.GPUs[0].MIG != dra.MIGOn || n.GPUs[1].MIG != dra.MIGOff {
		t.Errorf("policies %q and %q", n.GPUs[0].MIG, n.GPUs[1].MIG)
	}
}

func TestDiscoveryPassesHardwareErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	for n := range 2 {
		calls := 0
		hw := simNode(t, func(c sim.Call) error {
			if c.After {
				return nil
			}
			calls++
			if calls == n+1 {
				return broken
			}
			return nil
		}, "h100-80gb")
		if _, err := plugin.Discover(context.Background(), hw, plugin.Config{NodeName: "node-a"}); !errors.Is(err, broken) {
			t.Errorf("call %d: got %v", n+1, err)
		}
	}
}

func TestAMixEntryCountsForTheModelsThatHaveTheSize(t *testing.T) {
	for _, tc := range []struct {
		models []string
		mix    string
		sizes  []int // entries of the mix for each model
		want   string
	}{
		{[]string{"h100-80gb", "a30-24gb"}, "1g=1,3g=1,whole=1", []int{3, 2}, ""},
		{[]string{"h100-80gb", "a30-24gb"}, "3g=1", []int{1, 0}, ""},
		{[]string{"h100-80gb", "a30-24gb"}, "1g=1,5g=1", nil, `"5g"`},
		{[]string{"h100-80gb", "t4-16gb"}, "1g=x", nil, "must be a number"},
		{[]string{"t4-16gb"}, "1g=1", []int{0}, ""},
		{[]string{"h100-80gb", "a30-24gb"}, "1g=0,3g=1", []int{1, 0}, ""},
		{[]string{"h100-80gb", "a30-24gb"}, "whole=1,4g=3", []int{2, 1}, ""},
		{[]string{"h100-80gb"}, "1g=0", nil, "above 0"},
	} {
		n, err := plugin.Discover(context.Background(), simNode(t, nil, tc.models...), plugin.Config{NodeName: "node-a", Mix: tc.mix})
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v %s: got %v, want it to say %q", tc.models, tc.mix, err, tc.want)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for i, g := range n.GPUs {
			if len(g.Mix) != tc.sizes[i] {
				t.Errorf("%v %s: GPU %d has the mix %v", tc.models, tc.mix, i, g.Mix)
			}
		}
	}
}

// TestIndicesAreKeptForEver: a GPU keeps its number through hot plug, removal
// and changes of address, whatever comes and goes.
func TestIndicesAreKeptForEver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var known map[gpu.UUID]int
		for range rapid.IntRange(1, 6).Draw(t, "restarts") {
			var gpus []gpu.GPU
			for i := range 12 {
				if rapid.Bool().Draw(t, "present") {
					gpus = append(gpus, gpu.GPU{
						UUID:     gpu.UUID(fmt.Sprintf("GPU-%d", i)),
						PCIBusID: fmt.Sprintf("0000:%02x:00.0", rapid.IntRange(0, 255).Draw(t, "bus")),
					})
				}
			}
			before := maps.Clone(known)
			now, err := plugin.AssignIndices(gpus, known)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(before, known) {
				t.Fatal("the known numbers were changed")
			}
			seen := map[int]bool{}
			for id, n := range now {
				if old, ok := before[id]; ok && old != n {
					t.Fatalf("%s went from %d to %d", id, old, n)
				}
				if seen[n] {
					t.Fatalf("number %d is used twice", n)
				}
				seen[n] = true
			}
			for _, g := range gpus {
				if _, ok := now[g.UUID]; !ok {
					t.Fatalf("%s has no number", g.UUID)
				}
			}
			known = now
		}
	})
}

func TestImpossibleIndicesAreRefused(t *testing.T) {
	for _, known := range []map[gpu.UUID]int{{"a": 1, "b": 1}, {"a": -1}, {"a": 100}} {
		if _, err := plugin.AssignIndices(nil, known); err == nil {
			t.Errorf("%v accepted", known)
		}
	}
	var many []gpu.GPU
	for i := range 101 {
		many = append(many, gpu.GPU{UUID: gpu.UUID(fmt.Sprint(i))})
	}
	if _, err := plugin.AssignIndices(many, nil); err == nil || !strings.Contains(err.Error(), "one too many") {
		t.Errorf("got %v", err)
	}
}
