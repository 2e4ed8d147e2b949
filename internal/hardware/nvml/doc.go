// SPDX-License-Identifier: Apache-2.0

// Package nvml is [hardware.Node] on NVIDIA's management library. It is the
// only package that imports go-nvml, and the only one that needs cgo; built
// without cgo, [Open] says so.
//
// Calling a symbol that the installed library lacks ends the process, and no
// recover helps. So the library is initialised before anything else, and every
// call that is younger than the oldest supported driver (R535) is looked up
// first.
//
// NVML calls cannot be interrupted: a context is honoured before a call, not
// during one. Start with [Open].
package nvml

import "time"

// Options says how to reach the driver. The zero value is right on a node.
type Options struct {
	// LibraryPath is the library to load; empty looks for libnvidia-ml.so.1.
	LibraryPath string
	// HostRoot is where the host's /proc and /sys are found; empty is "/".
	HostRoot string
	// Clock gives the time of events; without it they carry none.
	Clock func() time.Time
}
