// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"path/filepath"
	"testing"

	"reslice.dev/internal/gpu/models"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/hardwaretest"
	"reslice.dev/internal/hardware/sim"
)

func newState(t testing.TB, gpus int, migOn bool, ids ...string) *sim.State {
	t.Helper()
	s, err := sim.NewState(ids, gpus, "node-a", migOn)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newNode(t testing.TB, cfg sim.Config) *sim.Node {
	t.Helper()
	n, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func TestConformance(t *testing.T) {
	for _, m := range models.All() {
		for mode, on := range map[string]bool{"MIG off": false, "MIG on": true} {
			if on && !m.HasMIG() {
				continue
			}
			t.Run(m.ID+" "+mode, func(t *testing.T) {
				hardwaretest.Run(t, func(t *testing.T) hardware.Node {
					return newNode(t, sim.Config{State: newState(t, 1, on, m.ID)})
				}, hardwaretest.Options{Mutate: true})
			})
		}
	}
}

func TestConformanceOfAMixedNodeWithAStateFile(t *testing.T) {
	hardwaretest.Run(t, func(t *testing.T) hardware.Node {
		s := newState(t, 3, true, "h100-80gb", "a100-40gb", "l4-24gb")
		return newNode(t, sim.Config{State: s, Path: filepath.Join(t.TempDir(), "state.json")})
	}, hardwaretest.Options{Mutate: true})
}
