// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || !linux

package nvml

import (
	"errors"

	"reslice.dev/internal/hardware"
)

// Open fails: this program has no access to NVML.
func Open(Options) (hardware.Node, error) {
	return nil, errors.New("built without cgo: this program cannot load the NVIDIA driver; use a build with CGO_ENABLED=1 for linux or run with --hardware=sim")
}
