// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// Memory implements [hardware.Usage].
func (n *node) Memory(ctx context.Context, of hardware.Instance) (hardware.Memory, error) {
	const m = hardware.MethodMemory
	dev, err := n.target(ctx, m, of)
	if err != nil {
		return hardware.Memory{}, err
	}
	if n.has("nvmlDeviceGetMemoryInfo_v2") {
		v2, ret := dev.GetMemoryInfo_v2()
		if ret != nvml.SUCCESS {
			return hardware.Memory{}, n.fail(m, of.GPU, ret, "")
		}
		return memory(v2.Total, v2.Reserved, v2.Used), nil
	}
	// The older call counts what the driver reserves as used.
	v1, ret := dev.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return hardware.Memory{}, n.fail(m, of.GPU, ret, "")
	}
	return memory(v1.Total, 0, v1.Used), nil
}

func memory(total, reserved, used uint64) hardware.Memory {
	return hardware.Memory{TotalBytes: bytes(total), ReservedBytes: bytes(reserved), UsedBytes: bytes(used)}
}

// bytes narrows a size; NVML's "all ones" means that it does not know.
func bytes(v uint64) int64 {
	if v > math.MaxInt64 {
		return gpu.Unknown
	}
	return int64(v)
}

// target is the handle of a GPU, or of the MIG device in a GPU instance.
func (n *node) target(ctx context.Context, m hardware.Method, of hardware.Instance) (nvml.Device, error) {
	if of.GI == hardware.NoInstance {
		return n.device(ctx, m, of.GPU)
	}
	in, err := n.instance(ctx, m, of.GPU, of.GI)
	if err != nil {
		return nil, err
	}
	live, err := n.live(m, of.GPU, in)
	if err != nil {
		return nil, err
	}
	if len(live.Compute) == 0 {
		return nil, &hardware.Error{Call: m, GPU: of.GPU, Err: hardware.ErrNotFound, Detail: "the GPU instance has no compute instance to ask"}
	}
	ci, ret := in.GetComputeInstanceById(live.Compute[0].ID)
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, of.GPU, ret, "compute instance")
	}
	info, ret := ci.GetInfo()
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, of.GPU, ret, "compute instance")
	}
	return info.Device, nil
}

// Utilization implements [hardware.Usage].
func (n *node) Utilization(ctx context.Context, id gpu.UUID) (hardware.Utilization, error) {
	dev, err := n.device(ctx, hardware.MethodUtilization, id)
	if err != nil {
		return hardware.Utilization{}, err
	}
	u, ret := dev.GetUtilizationRates()
	if ret == nvml.ERROR_GPU_IS_LOST {
		return hardware.Utilization{}, n.fail(hardware.MethodUtilization, id, ret, "")
	}
	return hardware.Utilization{GPU: reading(u.Gpu, ret, 1), Memory: reading(u.Memory, ret, 1)}, nil
}

// sample holds memory of the C library until it is closed.
type sample struct {
	of  hardware.Instance
	mu  sync.Mutex
	raw nvml.GpmSample // nil once closed
}

// Instance implements [hardware.Sample].
func (s *sample) Instance() hardware.Instance { return s.of }

// Close implements [hardware.Sample].
func (s *sample) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw != nil {
		_ = s.raw.Free() // nothing to be done about a failure
		s.raw = nil
	}
}

// Sample implements [hardware.Usage].
func (n *node) Sample(ctx context.Context, of hardware.Instance) (hardware.Sample, error) {
	const m = hardware.MethodSample
	dev, err := n.device(ctx, m, of.GPU)
	if err != nil {
		return nil, err
	}
	if !n.version.Able.Activity {
		return nil, n.unsupported(m, of.GPU, "driver %s has no performance counters (GPM)", n.version.Version)
	}
	support, ret := dev.GpmQueryDeviceSupport()
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, of.GPU, ret, "")
	}
	if support.IsSupportedDevice == 0 {
		return nil, n.unsupported(m, of.GPU, "performance counters (GPM) need Hopper or newer")
	}
	raw, ret := n.lib.GpmSampleAlloc()
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, of.GPU, ret, "allocate")
	}
	if of.GI == hardware.NoInstance {
		ret = dev.GpmSampleGet(raw)
	} else {
		ret = dev.GpmMigSampleGet(of.GI, raw)
	}
	if ret != nvml.SUCCESS {
		_ = raw.Free()
		return nil, n.fail(m, of.GPU, ret, "")
	}
	return &sample{of: of, raw: raw}, nil
}

// Activity implements [hardware.Usage].
func (n *node) Activity(ctx context.Context, first, second hardware.Sample) (hardware.Activity, error) {
	const m = hardware.MethodActivity
	a, okA := first.(*sample)
	b, okB := second.(*sample)
	if !okA || !okB || a == nil || b == nil || a == b || a.of != b.of {
		return hardware.Activity{}, &hardware.Error{Call: m, Err: hardware.ErrInvalid, Detail: "not two samples of one instance"}
	}
	if err := n.ready(ctx, m, a.of.GPU); err != nil {
		return hardware.Activity{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.raw == nil || b.raw == nil {
		return hardware.Activity{}, &hardware.Error{Call: m, GPU: a.of.GPU, Err: hardware.ErrInvalid, Detail: "a sample was closed"}
	}
	get := nvml.GpmMetricsGetType{NumMetrics: 3, Sample1: a.raw, Sample2: b.raw}
	for i, id := range []nvml.GpmMetricId{nvml.GPM_METRIC_SM_UTIL, nvml.GPM_METRIC_SM_OCCUPANCY, nvml.GPM_METRIC_DRAM_BW_UTIL} {
		get.Metrics[i].MetricId = uint32(id)
	}
	if ret := n.lib.GpmMetricsGet(&get); ret != nvml.SUCCESS {
		return hardware.Activity{}, n.fail(m, a.of.GPU, ret, "")
	}
	return hardware.Activity{
		SM: metric(get.Metrics[0]), Occupancy: metric(get.Metrics[1]), DRAM: metric(get.Metrics[2]),
	}, nil
}

// metric is valid only if its own code says so and it is a percentage: the
// driver has been seen to write nonsense without a code.
func metric(g nvml.GpmMetric) hardware.Reading {
	ret := nvml.Return(g.NvmlReturn)
	if ret != nvml.SUCCESS {
		return reading(uint32(0), ret, 1)
	}
	if !(g.Value >= 0 && g.Value <= 100) {
		return hardware.Reading{}
	}
	return hardware.Valid(g.Value)
}

// Processes implements [hardware.Usage].
func (n *node) Processes(ctx context.Context, id gpu.UUID) ([]hardware.Process, error) {
	const m = hardware.MethodProcesses
	dev, err := n.device(ctx, m, id)
	if err != nil {
		return nil, err
	}
	procs, ret := dev.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, id, ret, "")
	}
	mig := n.migOn(dev, m, id) == nil
	var out []hardware.Process
	for _, p := range procs {
		out = append(out, process(p, mig))
	}
	slices.SortFunc(out, func(a, b hardware.Process) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.GI, b.GI), cmp.Compare(a.CI, b.CI))
	})
	return out, nil
}

func process(p nvml.ProcessInfo, mig bool) hardware.Process {
	out := hardware.Process{PID: int(p.Pid), MemoryBytes: bytes(p.UsedGpuMemory), GI: hardware.NoInstance, CI: hardware.NoInstance}
	if mig {
		out.GI, out.CI = instanceNumber(p.GpuInstanceId), instanceNumber(p.ComputeInstanceId)
		out.SM = hardware.Reading{Status: hardware.ReadingUnsupported}
	}
	return out
}
