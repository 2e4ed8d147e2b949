// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reslice.dev/internal/gpu/models"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/sim"
)

func TestParseStateSaysWhatIsWrong(t *testing.T) {
	s := newState(t, 2, true, "h100-80gb")
	good, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	for name, tc := range map[string]struct{ from, to, want string }{
		"not JSON":          {text, "{", "no JSON object"},
		"empty":             {text, "", "no JSON object"},
		"null":              {text, "null", `"version": 1`},
		"other version":     {`"version": 1`, `"version": 2`, `"version": 1`},
		"unknown field":     {`"boots": 1`, `"boots": 1, "colour": "red"`, "colour"},
		"trailing data":     {text, text + "{}", "after the object"},
		"unknown model":     {`"h100-80gb"`, `"h100"`, "h100-80gb"},
		"no GPUs":           {text, `{"version":1,"nodeName":"a","boots":1,"driver":{"version":"580.1","cuda":13000}}`, "0 GPUs"},
		"no node name":      {`"node-a"`, `""`, "nodeName"},
		"same minor":        {`"minor": 1`, `"minor": 0`, "must differ"},
		"broken mode":       {`"migMode": "enabled"`, `"migMode": "on"`, "enabled or disabled"},
		"unknown profile":   {`"computeMode"`, `"instances": [{"id":7,"profile":99,"start":0,"size":1,"serial":1}], "computeMode"`, "unknown profile"},
		"impossible place":  {`"computeMode"`, `"instances": [{"id":7,"profile":19,"start":7,"size":1,"serial":1}], "computeMode"`, "not a placement"},
		"process nowhere":   {`"computeMode"`, `"processes": [{"pid":1,"memoryBytes":1,"gi":7,"ci":0}], "computeMode"`, "does not exist"},
		"process on all":    {`"computeMode"`, `"processes": [{"pid":1,"memoryBytes":1,"gi":-1,"ci":-1}], "computeMode"`, "with MIG on"},
		"driver version":    {`"615.71.03"`, `"abc"`, "580.95.05"},
		"uuid":              {`"uuid": "GPU-`, `"uuid": "XPU-`, "must look like"},
		"bus id":            {`"pciBusID": "0000:`, `"pciBusID": "foo:`, "must look like"},
		"root":              {`"pcieRoot": "pci`, `"pcieRoot": "x y`, "must look like"},
		"unused label":      {`"cuda"`, `"labels": {"1g.5gb": "1g.6gb"}, "cuda"`, "leave it out"},
		"label of another":  {`"cuda"`, `"labels": {"1g.10gb": "2g.20gb"}, "cuda"`, "two profiles"},
		"endless label":     {`"cuda"`, `"labels": {"1g.10gb": "` + strings.Repeat("x", 65) + `"}, "cuda"`, "1 to 64"},
		"place of a field":  {`"boots": 1`, "\n\n\"colour\": 1", "line 6"},
		"wrong type":        {`"boots": 1`, `"boots": "a"`, "line 4"},
		"broken time slice": {`"timeSlice": "default"`, `"timeSlice": "1ms"`, "short"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sim.ParseState([]byte(strings.Replace(text, tc.from, tc.to, 1)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want something with %q", err, tc.want)
			}
		})
	}
	if _, err := sim.ParseState(make([]byte, 5<<20)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a huge file: %v", err)
	}
}

func TestBrokenFileStopsTheNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if _, err := sim.Open(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := sim.Open(filepath.Dir(path), nil); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Open(pipe, nil); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a pipe without a writer: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("a failed opening left %v behind (%v)", left, err)
	}
	n := newNode(t, sim.Config{Path: path, State: newState(t, 1, true, "h100-80gb")})
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := n.GPUs(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("reading over a broken file: %v", err)
	}
	if _, err := sim.Open(path, nil); err == nil {
		t.Error("a broken file opens")
	}
}

func TestNewStateRefusesNonsense(t *testing.T) {
	for name, err := range map[string]error{
		"no models":     second(sim.NewState(nil, 1, "n", false)),
		"no GPUs":       second(sim.NewState([]string{"h100-80gb"}, 0, "n", false)),
		"17 GPUs":       second(sim.NewState([]string{"h100-80gb"}, 17, "n", false)),
		"unknown model": second(sim.NewState([]string{"voodoo"}, 1, "n", false)),
		"no node name":  second(sim.NewState([]string{"h100-80gb"}, 1, "", false)),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for gpus := 1; gpus <= 16; gpus++ {
		if _, err := sim.NewState([]string{"h100-80gb", "t4-16gb", "a30-24gb"}, gpus, "n", true); err != nil {
			t.Errorf("%d GPUs: %v", gpus, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// FuzzParseState: whatever the bytes, no panic; and what is accepted can be
// run, written and read again.
func FuzzParseState(f *testing.F) {
	for _, m := range models.All() {
		s, err := sim.NewState([]string{m.ID}, 2, "node-a", true)
		if err != nil {
			f.Fatal(err)
		}
		n := newNode(f, sim.Config{State: s})
		if m.HasMIG() {
			if _, err := n.CreateForeign(firstGPU(f, n), m.Partitions()[0], 1); err != nil {
				f.Fatal(err)
			}
		}
		if s, err = n.State(); err != nil {
			f.Fatal(err)
		}
		data, err := s.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte(`{"version":1e400}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := sim.ParseState(data)
		if err != nil {
			return
		}
		n := newNode(t, sim.Config{State: s})
		gpus, err := n.GPUs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range gpus {
			if _, err := n.GPUInstances(t.Context(), g.UUID); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Memory(t.Context(), hardware.Whole(g.UUID)); err != nil {
				t.Fatal(err)
			}
		}
		out, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sim.ParseState(out); err != nil {
			t.Fatalf("accepted, but not after writing: %v", err)
		}
	})
}
