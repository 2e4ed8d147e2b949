// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
	"reslice.dev/internal/hardware"
	"reslice.dev/internal/hardware/hardwaretest"
)

// The fakes answer the calls that node makes, as the driver is documented to;
// any other call panics on the nil interface inside. They let the conformance
// suite run over the real call sequences without a GPU.
type (
	fakeLib struct {
		nvml.Interface
		devices []*fakeDevice
		lost    int // a device index that answers GPU_IS_LOST, or -1
		sets    []fakeEvents
	}
	fakeSymbols struct{ nvml.ExtendedInterface }
	fakeDevice  struct {
		nvml.Device
		model   *gpu.Model
		index   int
		mode    int
		pending int
		compute nvml.ComputeMode
		layout  gpu.Layout
		gis     []*fakeGI
		lib     *fakeLib
	}
	fakeGI struct {
		nvml.GpuInstance
		dev  *fakeDevice
		id   uint32
		part gpu.Partition
		cis  []*fakeCI
	}
	fakeCI struct {
		nvml.ComputeInstance
		gi *fakeGI
	}
	fakeMIG struct {
		nvml.Device
		gi *fakeGI
	}
	fakeEvents struct {
		nvml.EventSet
		from chan nvml.EventData
	}
)

func (l *fakeLib) Extensions() nvml.ExtendedInterface { return fakeSymbols{} }
func (fakeSymbols) LookupSymbol(string) error         { return nil }
func (l *fakeLib) Shutdown() nvml.Return              { return nvml.SUCCESS }
func (l *fakeLib) DeviceGetCount() (int, nvml.Return) { return len(l.devices), nvml.SUCCESS }
func (l *fakeLib) EventSetCreate() (nvml.EventSet, nvml.Return) {
	set := fakeEvents{from: make(chan nvml.EventData, 1000)}
	l.sets = append(l.sets, set)
	return set, nvml.SUCCESS
}
func (l *fakeLib) SystemGetDriverVersion() (string, nvml.Return)     { return "615.71.03", nvml.SUCCESS }
func (l *fakeLib) SystemGetCudaDriverVersion_v2() (int, nvml.Return) { return 13040, nvml.SUCCESS }
func (l *fakeLib) DeviceGetHandleByIndex(i int) (nvml.Device, nvml.Return) {
	if i == l.lost {
		return nil, nvml.ERROR_GPU_IS_LOST
	}
	return l.devices[i], nvml.SUCCESS
}

func (e fakeEvents) Free() nvml.Return { return nvml.SUCCESS }
func (e fakeEvents) Wait(ms uint32) (nvml.EventData, nvml.Return) {
	select {
	case d := <-e.from:
		return d, nvml.SUCCESS
	case <-time.After(time.Duration(ms) * time.Millisecond / 50):
		return nvml.EventData{}, nvml.ERROR_TIMEOUT
	}
}

func (d *fakeDevice) GetUUID() (string, nvml.Return) {
	return fmt.Sprintf("GPU-%d", d.index), nvml.SUCCESS
}
func (d *fakeDevice) GetName() (string, nvml.Return)     { return d.model.ProductName, nvml.SUCCESS }
func (d *fakeDevice) GetMinorNumber() (int, nvml.Return) { return d.index, nvml.SUCCESS }
func (d *fakeDevice) GetBrand() (nvml.BrandType, nvml.Return) {
	return nvml.BRAND_NVIDIA, nvml.SUCCESS
}
func (d *fakeDevice) GetNumGpuCores() (int, nvml.Return) {
	return d.model.Multiprocessors * coresPerSM(d.model.ComputeCapability), nvml.SUCCESS
}
func (d *fakeDevice) GetAddressingMode() (nvml.DeviceAddressingMode, nvml.Return) {
	return nvml.DeviceAddressingMode{Value: uint32(nvml.DEVICE_ADDRESSING_MODE_HMM)}, nvml.SUCCESS
}
func (d *fakeDevice) GetVirtualizationMode() (nvml.GpuVirtualizationMode, nvml.Return) {
	return nvml.GPU_VIRTUALIZATION_MODE_NONE, nvml.SUCCESS
}
func (d *fakeDevice) GetArchitecture() (nvml.DeviceArchitecture, nvml.Return) {
	switch d.model.Architecture {
	case gpu.Ampere:
		return nvml.DEVICE_ARCH_AMPERE, nvml.SUCCESS
	case gpu.Turing:
		return nvml.DEVICE_ARCH_TURING, nvml.SUCCESS
	}
	return nvml.DEVICE_ARCH_HOPPER, nvml.SUCCESS
}
func (d *fakeDevice) GetCudaComputeCapability() (int, int, nvml.Return) {
	var major, minor int
	_, err := fmt.Sscanf(d.model.ComputeCapability, "%d.%d", &major, &minor)
	if err != nil {
		return 0, 0, nvml.ERROR_UNKNOWN
	}
	return major, minor, nvml.SUCCESS
}
func (d *fakeDevice) GetPciInfo() (nvml.PciInfo, nvml.Return) {
	var info nvml.PciInfo
	for i, c := range fmt.Sprintf("00000000:%02X:00.0", 0x17+d.index) {
		info.BusId[i] = int8(c)
	}
	return info, nvml.SUCCESS
}
func (d *fakeDevice) GetMemoryInfo() (nvml.Memory, nvml.Return) {
	return nvml.Memory{Total: uint64(d.model.MemoryBytes)}, nvml.SUCCESS
}
func (d *fakeDevice) GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return) {
	return nvml.Memory_v2{Total: uint64(d.model.MemoryBytes), Reserved: 600 << 20, Used: 1 << 20}, nvml.SUCCESS
}
func (d *fakeDevice) GetUtilizationRates() (nvml.Utilization, nvml.Return) {
	if d.mode == nvml.DEVICE_MIG_ENABLE {
		return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
	}
	return nvml.Utilization{Gpu: 40, Memory: 3}, nvml.SUCCESS
}
func (d *fakeDevice) GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return) {
	return []nvml.ProcessInfo{{Pid: 7, UsedGpuMemory: 1 << 20, GpuInstanceId: 0xFFFFFFFF, ComputeInstanceId: 0xFFFFFFFF}}, nvml.SUCCESS
}
func (d *fakeDevice) GetComputeMode() (nvml.ComputeMode, nvml.Return) { return d.compute, nvml.SUCCESS }
func (d *fakeDevice) SetComputeMode(m nvml.ComputeMode) nvml.Return {
	d.compute = m
	return nvml.SUCCESS
}
func (d *fakeDevice) GetTemperature(nvml.TemperatureSensors) (uint32, nvml.Return) {
	return 40, nvml.SUCCESS
}
func (d *fakeDevice) GetTemperatureThreshold(nvml.TemperatureThresholds) (uint32, nvml.Return) {
	return 87, nvml.SUCCESS
}
func (d *fakeDevice) GetPowerUsage() (uint32, nvml.Return)         { return 70500, nvml.SUCCESS }
func (d *fakeDevice) GetEnforcedPowerLimit() (uint32, nvml.Return) { return 700000, nvml.SUCCESS }
func (d *fakeDevice) GetTotalEccErrors(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
	return 0, nvml.ERROR_NOT_SUPPORTED
}
func (d *fakeDevice) GetRemappedRows() (int, int, bool, bool, nvml.Return) {
	return 0, 1, true, false, nvml.SUCCESS
}
func (d *fakeDevice) GetCurrentClocksEventReasons() (uint64, nvml.Return) { return 1, nvml.SUCCESS }
func (d *fakeDevice) GetFieldValues(v []nvml.FieldValue) nvml.Return {
	v[0].Value[0] = 1
	return nvml.SUCCESS
}
func (d *fakeDevice) GetSupportedEventTypes() (uint64, nvml.Return)    { return 0xFFFF, nvml.SUCCESS }
func (d *fakeDevice) RegisterEvents(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
func (d *fakeDevice) GetMigMode() (int, int, nvml.Return) {
	if !d.model.HasMIG() {
		return 0, 0, nvml.ERROR_NOT_SUPPORTED
	}
	return d.mode, d.pending, nvml.SUCCESS
}
func (d *fakeDevice) SetMigMode(mode int) (nvml.Return, nvml.Return) {
	if !d.model.HasMIG() {
		return nvml.SUCCESS, nvml.ERROR_NOT_SUPPORTED
	}
	d.pending = mode
	if mode != d.mode && d.model.Architecture.ModeSwitchNeedsReset() {
		return nvml.ERROR_RESET_REQUIRED, nvml.SUCCESS
	}
	d.mode = mode
	return nvml.SUCCESS, nvml.SUCCESS
}
func (d *fakeDevice) GetGpuInstanceProfileInfo(kind int) (nvml.GpuInstanceProfileInfo, nvml.Return) {
	for _, p := range d.model.Profiles {
		if p.Kind == kind {
			info, _ := asNVML(p)
			return info, nvml.SUCCESS
		}
	}
	return nvml.GpuInstanceProfileInfo{}, nvml.ERROR_NOT_SUPPORTED
}
func (d *fakeDevice) GetGpuInstancePossiblePlacements(info *nvml.GpuInstanceProfileInfo) ([]nvml.GpuInstancePlacement, nvml.Return) {
	p, _ := d.model.Profile(gpu.ProfileID(info.Id))
	_, at := asNVML(p)
	return at, nvml.SUCCESS
}
func (d *fakeDevice) GetGpuInstances(info *nvml.GpuInstanceProfileInfo) ([]nvml.GpuInstance, nvml.Return) {
	var out []nvml.GpuInstance
	for _, g := range d.gis {
		if g.part.Profile == gpu.ProfileID(info.Id) {
			out = append(out, g)
		}
	}
	return out, nvml.SUCCESS
}
func (d *fakeDevice) GetGpuInstanceById(id int) (nvml.GpuInstance, nvml.Return) {
	for _, g := range d.gis {
		if g.id == uint32(id) {
			return g, nvml.SUCCESS
		}
	}
	return nil, nvml.ERROR_NOT_FOUND
}
func (d *fakeDevice) CreateGpuInstanceWithPlacement(info *nvml.GpuInstanceProfileInfo, at *nvml.GpuInstancePlacement) (nvml.GpuInstance, nvml.Return) {
	part := gpu.Partition{Profile: gpu.ProfileID(info.Id), Placement: gpu.Placement{Start: int(at.Start), Size: int(at.Size)}}
	next, err := d.layout.With(part)
	if err != nil {
		return nil, nvml.ERROR_INSUFFICIENT_RESOURCES
	}
	d.layout = next
	g := &fakeGI{dev: d, id: at.Start, part: part}
	d.gis = append(d.gis, g)
	for _, set := range d.lib.sets {
		set.from <- nvml.EventData{Device: d, EventType: nvml.EventMigConfigChange, GpuInstanceId: g.id, ComputeInstanceId: 0xFFFFFFFF}
	}
	return g, nvml.SUCCESS
}

func (g *fakeGI) GetInfo() (nvml.GpuInstanceInfo, nvml.Return) {
	at := nvml.GpuInstancePlacement{Start: uint32(g.part.Placement.Start), Size: uint32(g.part.Placement.Size)}
	return nvml.GpuInstanceInfo{Device: g.dev, Id: g.id, ProfileId: uint32(g.part.Profile), Placement: at}, nvml.SUCCESS
}
func (g *fakeGI) Destroy() nvml.Return {
	if len(g.cis) > 0 {
		return nvml.ERROR_IN_USE
	}
	g.dev.layout = g.dev.layout.Without(g.part)
	for i, o := range g.dev.gis {
		if o == g {
			g.dev.gis = append(g.dev.gis[:i:i], g.dev.gis[i+1:]...)
		}
	}
	return nvml.SUCCESS
}
func (g *fakeGI) slices() int {
	p, _ := g.dev.model.Profile(g.part.Profile)
	return p.ComputeSlices
}
func (g *fakeGI) GetComputeInstanceProfileInfo(kind, _ int) (nvml.ComputeInstanceProfileInfo, nvml.Return) {
	for n, k := range spanning {
		if k == kind && n <= g.slices() {
			return nvml.ComputeInstanceProfileInfo{Id: uint32(kind), SliceCount: uint32(n)}, nvml.SUCCESS
		}
	}
	return nvml.ComputeInstanceProfileInfo{}, nvml.ERROR_NOT_SUPPORTED
}
func (g *fakeGI) GetComputeInstances(info *nvml.ComputeInstanceProfileInfo) ([]nvml.ComputeInstance, nvml.Return) {
	var out []nvml.ComputeInstance
	for _, c := range g.cis {
		if int(info.SliceCount) == g.slices() {
			out = append(out, c)
		}
	}
	return out, nvml.SUCCESS
}
func (g *fakeGI) GetComputeInstanceById(id int) (nvml.ComputeInstance, nvml.Return) {
	if id < len(g.cis) {
		return g.cis[id], nvml.SUCCESS
	}
	return nil, nvml.ERROR_NOT_FOUND
}
func (g *fakeGI) CreateComputeInstance(info *nvml.ComputeInstanceProfileInfo) (nvml.ComputeInstance, nvml.Return) {
	if len(g.cis) > 0 || int(info.SliceCount) != g.slices() {
		return nil, nvml.ERROR_INSUFFICIENT_RESOURCES
	}
	g.cis = []*fakeCI{{gi: g}}
	return g.cis[0], nvml.SUCCESS
}

func (c *fakeCI) GetInfo() (nvml.ComputeInstanceInfo, nvml.Return) {
	return nvml.ComputeInstanceInfo{Device: fakeMIG{gi: c.gi}, GpuInstance: c.gi}, nvml.SUCCESS
}
func (c *fakeCI) Destroy() nvml.Return {
	c.gi.cis = nil
	return nvml.SUCCESS
}

func (m fakeMIG) GetUUID() (string, nvml.Return) {
	return fmt.Sprintf("MIG-%x", sha1.Sum(fmt.Append(nil, m.gi.dev.index, m.gi.part.Placement))), nvml.SUCCESS
}
func (m fakeMIG) GetMemoryInfo_v2() (nvml.Memory_v2, nvml.Return) {
	p, _ := m.gi.dev.model.Profile(m.gi.part.Profile)
	return nvml.Memory_v2{Total: uint64(p.MemoryBytes)}, nvml.SUCCESS
}

func fakeNode(t *testing.T, lost int, ids ...string) *node {
	t.Helper()
	lib := &fakeLib{lost: lost}
	for i, id := range ids {
		m, err := models.ByID(id)
		if err != nil {
			t.Fatal(err)
		}
		on := 0
		if m.HasMIG() {
			on = nvml.DEVICE_MIG_ENABLE
		}
		lib.devices = append(lib.devices, &fakeDevice{model: m, index: i, mode: on, pending: on, layout: gpu.NewLayout(m), lib: lib})
	}
	root := t.TempDir()
	boot := filepath.Join(root, "proc/sys/kernel/random")
	if err := os.MkdirAll(boot, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(boot, "boot_id"), []byte("b00t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &node{
		lib: lib, walk: device.New(lib), host: host{root}, clock: func() time.Time { return time.Time{} },
		handles: map[gpu.UUID]nvml.Device{}, stop: make(chan struct{}),
	}
	if err := n.readDriver(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestConformanceOverAFakeDriver(t *testing.T) {
	hardwaretest.Run(t, func(t *testing.T) hardware.Node {
		return fakeNode(t, -1, "h100-80gb", "a100-40gb", "t4-16gb")
	}, hardwaretest.Options{Mutate: true})
}

func TestDiscoveryReadsWhatTheDriverSays(t *testing.T) {
	n := fakeNode(t, 1, "h100-80gb", "a100-40gb")
	gpus, err := n.GPUs(t.Context())
	if err != nil || len(gpus) != 1 {
		t.Fatalf("%v %v", gpus, err)
	}
	g := gpus[0]
	table, err := models.ByID("h100-80gb")
	if err != nil {
		t.Fatal(err)
	}
	if g.Model.Multiprocessors != table.Multiprocessors || g.Model.Architecture != gpu.Hopper || g.MIGMode != gpu.MIGEnabled ||
		g.PCIBusID != "0000:17:00.0" || g.AddressingMode != "HMM" || g.Brand != "Nvidia" || len(g.Model.Profiles) != len(table.Profiles) {
		t.Errorf("%+v of %+v", g, g.Model)
	}
	hidden, err := n.Hidden(t.Context())
	if err != nil || len(hidden) != 1 || hidden[0].Reason != "GPU 1: GPU is lost" {
		t.Errorf("%v %v", hidden, err)
	}
	h, err := n.Health(t.Context(), g.UUID)
	if err != nil || h.Recovery != hardware.RecoveryGPUReset || !h.Rows.Pending || h.PowerWatts != hardware.Valid(70.5) ||
		h.CorrectedECC.Status != hardware.ReadingUnsupported {
		t.Errorf("%+v %v", h, err)
	}
}
