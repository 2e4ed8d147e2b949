// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/hardwaretest"
)

func TestOpenWithoutDriverIsAnErrorAndNotTheEnd(t *testing.T) {
	_, err := Open(Options{LibraryPath: "libno-such-driver.so.1"})
	if !errors.Is(err, hardware.ErrDriverNotLoaded) {
		t.Fatalf("got %v", err)
	}
	n, err := Open(Options{})
	if err == nil {
		// A machine with a driver: the part of the suite that changes nothing.
		t.Cleanup(func() { _ = n.Close() })
		hardwaretest.Run(t, func(*testing.T) hardware.Node { return n }, hardwaretest.Options{})
		return
	}
	for _, want := range []string{"no NVIDIA driver on this machine", "libnvidia-ml.so.1 not found", "install the driver or run with --hardware=sim"} {
		if errors.Is(err, hardware.ErrDriverNotLoaded) && !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

func TestCodesBecomeSentinels(t *testing.T) {
	for ret, want := range map[nvml.Return]error{
		nvml.ERROR_IN_USE:                 hardware.ErrBusy,
		nvml.ERROR_INSUFFICIENT_RESOURCES: hardware.ErrInsufficientResources,
		nvml.ERROR_NOT_SUPPORTED:          hardware.ErrUnsupported,
		nvml.ERROR_FUNCTION_NOT_FOUND:     hardware.ErrUnsupported,
		nvml.ERROR_NO_PERMISSION:          hardware.ErrNoPermission,
		nvml.ERROR_NOT_FOUND:              hardware.ErrNotFound,
		nvml.ERROR_GPU_IS_LOST:            hardware.ErrLost,
		nvml.ERROR_TIMEOUT:                hardware.ErrTimeout,
		nvml.ERROR_RESET_REQUIRED:         hardware.ErrResetRequired,
		nvml.ERROR_DRIVER_NOT_LOADED:      hardware.ErrDriverNotLoaded,
		nvml.ERROR_INVALID_ARGUMENT:       hardware.ErrInvalid,
	} {
		n := &node{}
		err := n.fail(hardware.MethodMemory, "GPU-1", ret, "")
		if !errors.Is(err, want) || !strings.Contains(err.Error(), "GPU-1") {
			t.Errorf("%d: %v", ret, err)
		}
	}
	if text := cause(nvml.ERROR_UNKNOWN).Error(); text != "NVML ERROR_UNKNOWN" {
		t.Error(text)
	}
	if text := cause(4711).Error(); text != "NVML error 4711" {
		t.Error(text)
	}
}

// Every row of the board tables, as NVML would report it, comes back as it is:
// same label, same grid, same numbers.
func TestProfilesComeBackAsTheTablesHaveThem(t *testing.T) {
	walk := device.New(nil)
	rows := 0
	for _, m := range models.All() {
		if !m.HasMIG() {
			continue
		}
		got := gpu.Model{ID: m.ID, Architecture: m.Architecture}
		var profiles []gpu.Profile
		for _, want := range m.Profiles {
			info, at := asNVML(want)
			p, ok := profile(walk, want.Kind, info, at, uint64(m.MemoryBytes))
			if !ok {
				t.Errorf("%s %s is dropped", m.ID, want.Name)
				continue
			}
			profiles = append(profiles, p)
			if want.Estimated {
				continue // a label does not follow from an estimated size
			}
			rows++
			if p.Name != want.Name || p.Variant != want.Variant || p.ID != want.ID || p.MemorySlices != want.MemorySlices ||
				p.MaxInstances != want.MaxInstances || p.MemoryBytes != want.MemoryBytes {
				t.Errorf("%s: got %+v, want %+v", m.ID, p, want)
			}
		}
		if addProfiles(&got, profiles); got.MemorySlices != m.MemorySlices || got.ComputeSlices != m.ComputeSlices {
			t.Errorf("%s: grid %d and %d, want %d and %d", m.ID, got.MemorySlices, got.ComputeSlices, m.MemorySlices, m.ComputeSlices)
		}
		if err := got.Validate(); err != nil {
			t.Error(err)
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows checked", rows)
	}
}

func asNVML(p gpu.Profile) (nvml.GpuInstanceProfileInfo, []nvml.GpuInstancePlacement) {
	known := func(n int) uint32 { return uint32(max(n, 1)) }
	info := nvml.GpuInstanceProfileInfo{
		Id: uint32(p.ID), SliceCount: uint32(p.ComputeSlices), InstanceCount: uint32(p.MaxInstances),
		MultiprocessorCount: known(p.Multiprocessors), CopyEngineCount: known(p.Engines.Copy),
		MemorySizeMB: uint64(p.MemoryBytes / mib),
	}
	var at []nvml.GpuInstancePlacement
	for _, pl := range p.Placements {
		at = append([]nvml.GpuInstancePlacement{{Start: uint32(pl.Start), Size: uint32(pl.Size)}}, at...)
	}
	return info, at
}

func TestOddProfilesDoNoHarm(t *testing.T) {
	walk := device.New(nil)
	info := nvml.GpuInstanceProfileInfo{SliceCount: 1, InstanceCount: 9, MemorySizeMB: 9984}
	at := []nvml.GpuInstancePlacement{{Start: 0, Size: 1}, {Start: 1, Size: 1}}
	if _, ok := profile(walk, 0, info, nil, 80<<30); ok {
		t.Error("a profile without placements")
	}
	if _, ok := profile(walk, 99, info, at, 80<<30); ok {
		t.Error("a kind that nobody knows")
	}
	if _, ok := profile(walk, 0, info, at, 0); ok {
		t.Error("a GPU without memory")
	}
	if p, ok := profile(walk, 0, info, at, 80<<30); !ok || p.MaxInstances != 2 {
		t.Errorf("more instances than places: %+v", p)
	}
	info.SliceCount = 3
	if p, ok := profile(walk, nvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX, info, at, 80<<30); !ok || p.Variant != gpu.VariantGraphics {
		t.Errorf("3g+gfx: %+v", p)
	}
}

func TestSmallTranslations(t *testing.T) {
	if instanceNumber(math.MaxUint32) != hardware.NoInstance || instanceNumber(9) != 9 {
		t.Error("instance numbers")
	}
	if bytes(math.MaxUint64) != gpu.Unknown || bytes(5) != 5 {
		t.Error("bytes")
	}
	if modelID("NVIDIA H100 80GB HBM3") != "nvidia-h100-80gb-hbm3" || modelID("?") != "unknown" {
		t.Error("model id")
	}
	if architecture(nvml.DEVICE_ARCH_BLACKWELL, "10.3") != gpu.BlackwellUltra || architecture(nvml.DEVICE_ARCH_ADA, "8.9") != gpu.Ada {
		t.Error("architecture")
	}
	for arch := nvml.DeviceArchitecture(nvml.DEVICE_ARCH_KEPLER); arch <= nvml.DEVICE_ARCH_RUBIN; arch++ {
		if got := architecture(arch, ""); got.SupportsMPS() != (arch >= nvml.DEVICE_ARCH_VOLTA) {
			t.Errorf("architecture %d (%s): MPS %v", arch, got, got.SupportsMPS())
		}
	}
	if recoveryAction(4) != hardware.RecoveryDrainAndReset || recoveryAction(99) != hardware.RecoveryUnknown {
		t.Error("recovery action")
	}
	if got := throttle(0x1 | 0x4 | 0x40); len(got) != 1 || got[0] != hardware.ThrottleHardwareThermal {
		t.Errorf("throttle %v", got)
	}
	if r := metric(nvml.GpmMetric{Value: math.NaN()}); r.Status != hardware.ReadingUnknown {
		t.Errorf("NaN is %+v", r)
	}
	if p := process(nvml.ProcessInfo{Pid: 1, GpuInstanceId: 9, ComputeInstanceId: 0}, false); p.GI != hardware.NoInstance {
		t.Errorf("process with MIG off %+v", p)
	}
	if eventKind(nvml.EventTypeFatalPoisonError) != hardware.EventOther || eventKind(8) != hardware.EventXID {
		t.Error("event kinds")
	}
	for want, codes := range map[hardware.Activation][2]nvml.Return{
		hardware.ActivationDone:          {nvml.SUCCESS, nvml.SUCCESS},
		hardware.ActivationInUse:         {nvml.ERROR_IN_USE, nvml.SUCCESS},
		hardware.ActivationResetRequired: {nvml.ERROR_RESET_REQUIRED, nvml.SUCCESS},
	} {
		if got, err := activation(codes[0], codes[1]); got != want || err != nil {
			t.Errorf("%v: %v %v", codes, got, err)
		}
	}
	if _, err := activation(nvml.SUCCESS, nvml.ERROR_NOT_SUPPORTED); !errors.Is(err, hardware.ErrUnsupported) {
		t.Error(err)
	}
}

func TestHostFacts(t *testing.T) {
	root := t.TempDir()
	dev := filepath.Join(root, "sys/devices/pci0000:16/0000:16:01.0/0000:17:00.0")
	for path, text := range map[string]string{
		filepath.Join(dev, "numa_node"):                       "1\n",
		filepath.Join(root, "proc/sys/kernel/random/boot_id"): "b00t\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bus := filepath.Join(root, "sys/bus/pci/devices")
	if err := os.MkdirAll(bus, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dev, filepath.Join(bus, "0000:17:00.0")); err != nil {
		t.Fatal(err)
	}
	h := host{root}
	if got := h.pcieRoot("0000:17:00.0"); got != "pci0000:16" {
		t.Errorf("root %q", got)
	}
	if h.numaNode("0000:17:00.0") != 1 || h.numaNode("0000:99:00.0") != -1 || h.pcieRoot("0000:99:00.0") != "" {
		t.Error("NUMA node")
	}
	if id, err := h.bootID(); id != "b00t" || err != nil {
		t.Error(id, err)
	}
}
