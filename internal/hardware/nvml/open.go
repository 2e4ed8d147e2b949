// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

// node is the driver of this machine.
type node struct {
	lib     nvml.Interface
	walk    device.Interface
	host    host
	clock   func() time.Time
	version hardware.Driver

	mu sync.Mutex
	// handles by UUID: looking one up by UUID can take seconds under load.
	handles map[gpu.UUID]nvml.Device
	models  []*gpu.Model
	closed  bool
	streams sync.WaitGroup
	stop    chan struct{}
}

var _ hardware.Node = (*node)(nil)

// Open loads the driver's library. [hardware.ErrDriverNotLoaded] says that
// there is none.
func Open(o Options) (hardware.Node, error) {
	var opts []nvml.LibraryOption
	if o.LibraryPath != "" {
		opts = append(opts, nvml.WithLibraryPath(o.LibraryPath))
	}
	lib := nvml.New(opts...)
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, initError(ret, o.LibraryPath)
	}
	n := &node{
		lib: lib, walk: device.New(lib), host: host{o.HostRoot}, clock: o.Clock,
		handles: map[gpu.UUID]nvml.Device{}, stop: make(chan struct{}),
	}
	if n.clock == nil {
		n.clock = func() time.Time { return time.Time{} }
	}
	if err := n.readDriver(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// initError explains why the library does not start.
func initError(ret nvml.Return, path string) error {
	if path == "" {
		path = "libnvidia-ml.so.1"
	}
	err := &hardware.Error{Call: "Init", Err: hardware.ErrDriverNotLoaded}
	switch {
	case ret == nvml.ERROR_LIBRARY_NOT_FOUND:
		err.Detail = path + " not found"
	case ret == nvml.ERROR_DRIVER_NOT_LOADED:
		err.Detail = "the kernel module is not loaded"
		err.Next = "load the nvidia module or run with --hardware=sim"
	case ret == nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		err.Err = errors.New("library and kernel module are of different versions")
		err.Next = "reboot the node after a driver update"
	default:
		err.Err = cause(ret)
	}
	return err
}

func (n *node) readDriver() error {
	version, ret := n.lib.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		return n.fail(hardware.MethodDriver, "", ret, "driver version")
	}
	cuda, ret := n.lib.SystemGetCudaDriverVersion_v2()
	if ret != nvml.SUCCESS {
		return n.fail(hardware.MethodDriver, "", ret, "CUDA version")
	}
	d := hardware.Driver{Version: version, CUDA: cuda}
	d.Able = hardware.Abilities{
		Activity:       n.has("nvmlGpmSampleGet") && n.has("nvmlGpmMigSampleGet") && n.has("nvmlGpmMetricsGet"),
		RecoveryAction: d.Major() >= 560,
		MemoryLimits:   n.has("nvmlDeviceSetMemoryLimits_v1") && n.has("nvmlDeviceGetMemoryLimits_v1"),
		MPSNamespaces:  d.Major() >= 615,
	}
	n.version = d
	return nil
}

// has reports whether the library offers a symbol. Call nothing that it lacks.
func (n *node) has(symbol string) bool { return n.lib.Extensions().LookupSymbol(symbol) == nil }

// Close ends the event streams and releases the library.
func (n *node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	close(n.stop)
	n.mu.Unlock()
	n.streams.Wait()
	if ret := n.lib.Shutdown(); ret != nvml.SUCCESS {
		return n.fail("Close", "", ret, "")
	}
	return nil
}

// ready refuses calls after the context's end or Close.
func (n *node) ready(ctx context.Context, m hardware.Method, id gpu.UUID) error {
	if err := ctx.Err(); err != nil {
		return &hardware.Error{Call: m, GPU: id, Err: err}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return &hardware.Error{Call: m, GPU: id, Err: errors.New("the node was closed")}
	}
	return nil
}

// device finds the handle of a GPU, walking all GPUs if it is new.
func (n *node) device(ctx context.Context, m hardware.Method, id gpu.UUID) (nvml.Device, error) {
	if err := n.ready(ctx, m, id); err != nil {
		return nil, err
	}
	n.mu.Lock()
	dev, ok := n.handles[id]
	n.mu.Unlock()
	if ok {
		return dev, nil
	}
	count, ret := n.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, n.fail(m, id, ret, "count GPUs")
	}
	for i := range count {
		dev, ret := n.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // hidden; Hidden has the reason
		}
		if uuid, ret := dev.GetUUID(); ret == nvml.SUCCESS && gpu.UUID(uuid) == id {
			n.remember(id, dev)
			return dev, nil
		}
	}
	return nil, &hardware.Error{Call: m, GPU: id, Err: hardware.ErrNotFound, Detail: "no GPU with this UUID"}
}

func (n *node) remember(id gpu.UUID, dev nvml.Device) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.handles[id] = dev
}

func (n *node) forget(id gpu.UUID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.handles, id)
}

func (n *node) fail(m hardware.Method, id gpu.UUID, ret nvml.Return, detail string) error {
	return &hardware.Error{Call: m, GPU: id, Err: cause(ret), Detail: detail}
}

func (n *node) unsupported(m hardware.Method, id gpu.UUID, format string, args ...any) error {
	return &hardware.Error{Call: m, GPU: id, Err: hardware.ErrUnsupported, Detail: fmt.Sprintf(format, args...)}
}
