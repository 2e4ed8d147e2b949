// SPDX-License-Identifier: Apache-2.0

package hardware_test

import (
	"errors"
	"testing"

	"reslice.dev/internal/hardware"
)

// The first and last rows are those of the driver's own table of minors.
func TestCapabilityMinors(t *testing.T) {
	for _, tc := range []struct {
		minor, gi, ci int
		want          hardware.CapabilityMinors
		ok            bool
	}{
		{0, 0, 0, hardware.CapabilityMinors{GI: 3, CI: 4}, true},
		{0, 9, 0, hardware.CapabilityMinors{GI: 84, CI: 85}, true},
		{31, 14, 7, hardware.CapabilityMinors{GI: 4314, CI: 4322}, true},
		{32, 0, 0, hardware.CapabilityMinors{}, false},
		{0, 15, 0, hardware.CapabilityMinors{}, false},
		{0, 0, -1, hardware.CapabilityMinors{}, false},
	} {
		got, ok := hardware.CapabilityMinorsOf(tc.minor, tc.gi, tc.ci)
		if got != tc.want || ok != tc.ok {
			t.Errorf("GPU %d GI %d CI %d: %v %t", tc.minor, tc.gi, tc.ci, got, ok)
		}
	}
}

func TestErrorNamesCallGPUAndNextStep(t *testing.T) {
	err := error(&hardware.Error{
		Call: hardware.MethodDestroyGPUInstance, GPU: "GPU-1", Detail: "GI 9 has compute instance 0", Err: hardware.ErrBusy,
	})
	const want = "DestroyGPUInstance on GPU-1: GI 9 has compute instance 0: in use; stop what holds it and try again"
	if err.Error() != want || !errors.Is(err, hardware.ErrBusy) {
		t.Errorf("%q", err)
	}
	if next := (&hardware.Error{Err: hardware.ErrBusy, Next: "wait"}).NextStep(); next != "wait" {
		t.Error(next)
	}
	if next := (&hardware.Error{Err: errors.New("odd")}).NextStep(); next != "" {
		t.Error(next)
	}
}

func TestReadingsAndVersions(t *testing.T) {
	if _, ok := (hardware.Reading{}).Get(); ok {
		t.Error("a forgotten reading is valid")
	}
	if v, ok := hardware.Valid(0).Get(); v != 0 || !ok {
		t.Error("a measured zero is not")
	}
	for version, want := range map[string]int{"580.95.05": 580, "": 0, "x": 0, "-5": 0} {
		if got := (hardware.Driver{Version: version}).Major(); got != want {
			t.Errorf("%q: %d", version, got)
		}
	}
}
