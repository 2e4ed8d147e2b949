// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux

package nvml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/hardware"
)

const mib = 1 << 20

// sentinels maps NVML's codes to what callers branch on.
var sentinels = map[nvml.Return]error{
	nvml.ERROR_INVALID_ARGUMENT:       hardware.ErrInvalid,
	nvml.ERROR_NOT_SUPPORTED:          hardware.ErrUnsupported,
	nvml.ERROR_FUNCTION_NOT_FOUND:     hardware.ErrUnsupported,
	nvml.ERROR_NO_PERMISSION:          hardware.ErrNoPermission,
	nvml.ERROR_NOT_FOUND:              hardware.ErrNotFound,
	nvml.ERROR_GPU_NOT_FOUND:          hardware.ErrNotFound,
	nvml.ERROR_DRIVER_NOT_LOADED:      hardware.ErrDriverNotLoaded,
	nvml.ERROR_LIBRARY_NOT_FOUND:      hardware.ErrDriverNotLoaded,
	nvml.ERROR_TIMEOUT:                hardware.ErrTimeout,
	nvml.ERROR_GPU_IS_LOST:            hardware.ErrLost,
	nvml.ERROR_RESET_REQUIRED:         hardware.ErrResetRequired,
	nvml.ERROR_IN_USE:                 hardware.ErrBusy,
	nvml.ERROR_INSUFFICIENT_RESOURCES: hardware.ErrInsufficientResources,
}

// cause is the sentinel of an NVML code, or an error with NVML's name of it.
// The names are written here: NVML's own text would need a loaded library.
func cause(ret nvml.Return) error {
	if err, ok := sentinels[ret]; ok {
		return err
	}
	if name, ok := codeNames[ret]; ok {
		return fmt.Errorf("NVML %s", name)
	}
	return fmt.Errorf("NVML error %d", int(ret))
}

var codeNames = map[nvml.Return]string{
	nvml.ERROR_UNINITIALIZED:             "ERROR_UNINITIALIZED",
	nvml.ERROR_INSUFFICIENT_SIZE:         "ERROR_INSUFFICIENT_SIZE",
	nvml.ERROR_INSUFFICIENT_POWER:        "ERROR_INSUFFICIENT_POWER: check the power cables of the GPU",
	nvml.ERROR_IRQ_ISSUE:                 "ERROR_IRQ_ISSUE",
	nvml.ERROR_CORRUPTED_INFOROM:         "ERROR_CORRUPTED_INFOROM",
	nvml.ERROR_OPERATING_SYSTEM:          "ERROR_OPERATING_SYSTEM",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH:   "ERROR_LIB_RM_VERSION_MISMATCH: reboot after a driver update",
	nvml.ERROR_MEMORY:                    "ERROR_MEMORY",
	nvml.ERROR_NO_DATA:                   "ERROR_NO_DATA",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "ERROR_ARGUMENT_VERSION_MISMATCH",
	nvml.ERROR_NOT_READY:                 "ERROR_NOT_READY",
	nvml.ERROR_INVALID_STATE:             "ERROR_INVALID_STATE",
	nvml.ERROR_UNKNOWN:                   "ERROR_UNKNOWN",
}

// architectures by NVML's number. Blackwell Ultra is reported as Blackwell and
// told apart by its compute capability, 10.3.
func architecture(arch nvml.DeviceArchitecture, computeCapability string) gpu.Architecture {
	switch arch {
	case nvml.DEVICE_ARCH_KEPLER:
		return gpu.Kepler
	case nvml.DEVICE_ARCH_MAXWELL:
		return gpu.Maxwell
	case nvml.DEVICE_ARCH_PASCAL:
		return gpu.Pascal
	case nvml.DEVICE_ARCH_VOLTA:
		return gpu.Volta
	case nvml.DEVICE_ARCH_TURING:
		return gpu.Turing
	case nvml.DEVICE_ARCH_AMPERE:
		return gpu.Ampere
	case nvml.DEVICE_ARCH_ADA:
		return gpu.Ada
	case nvml.DEVICE_ARCH_HOPPER:
		return gpu.Hopper
	case nvml.DEVICE_ARCH_BLACKWELL:
		if computeCapability == "10.3" {
			return gpu.BlackwellUltra
		}
		return gpu.Blackwell
	case nvml.DEVICE_ARCH_RUBIN:
		return "Rubin"
	}
	return gpu.Architecture(fmt.Sprintf("architecture %d", arch))
}

// coresPerSM by compute capability (CUDA programming guide): NVML counts CUDA
// cores, not SMs. 0 if unknown.
func coresPerSM(computeCapability string) int {
	switch computeCapability {
	case "7.0", "7.2", "7.5", "8.0":
		return 64
	case "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1":
		return 128
	}
	return 0
}

// modelID is a short name that follows from what the driver says:
// "NVIDIA H100 80GB HBM3" is "nvidia-h100-80gb-hbm3".
func modelID(product string) string {
	fields := strings.FieldsFunc(strings.ToLower(product), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if len(fields) == 0 {
		return "unknown"
	}
	return strings.Join(fields, "-")
}

// profile translates a GPU instance profile and its placements. kind is the
// number that the profile was asked for with. It reports false for a row that
// offers nothing: no placement, or a kind without a name.
func profile(walk device.Interface, kind int, info nvml.GpuInstanceProfileInfo, at []nvml.GpuInstancePlacement, totalBytes uint64) (gpu.Profile, bool) {
	name, ok := profileName(walk, kind, info, totalBytes)
	if !ok || len(at) == 0 {
		return gpu.Profile{}, false
	}
	p := gpu.Profile{
		ID: gpu.ProfileID(info.Id), Kind: kind, Name: name, Variant: gpu.VariantOf(name),
		ComputeSlices: int(info.SliceCount), MemorySlices: int(at[0].Size),
		MemoryBytes:     int64(info.MemorySizeMB) * mib,
		Multiprocessors: int(info.MultiprocessorCount),
		Engines: gpu.Engines{
			Copy: int(info.CopyEngineCount), Decoder: int(info.DecoderCount), Encoder: int(info.EncoderCount),
			JPEG: int(info.JpegCount), OFA: int(info.OfaCount),
		},
	}
	for _, pl := range at {
		p.Placements = append(p.Placements, gpu.Placement{Start: int(pl.Start), Size: int(pl.Size)})
	}
	slices.SortFunc(p.Placements, gpu.ComparePlacements)
	p.Placements = slices.Compact(p.Placements)
	// Some A30 rows count more instances than there are places.
	p.MaxInstances = min(int(info.InstanceCount), len(p.Placements))
	if p.MaxInstances == 0 {
		p.MaxInstances = len(p.Placements)
	}
	return p, true
}

// profileName is the label as nvidia-smi prints it: the rule is NVIDIA's own,
// from its library, for the compute instance that spans.
func profileName(walk device.Interface, kind int, info nvml.GpuInstanceProfileInfo, totalBytes uint64) (string, bool) {
	span, ok := spanning[int(info.SliceCount)]
	if !ok || totalBytes == 0 {
		return "", false
	}
	suffix := ""
	if kind == nvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX {
		// The library has no name for this kind.
		kind, suffix = nvml.GPU_INSTANCE_PROFILE_3_SLICE, string(gpu.VariantGraphics)
	}
	named, err := walk.NewMigProfile(kind, span, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, info.MemorySizeMB, totalBytes)
	if err != nil {
		return "", false
	}
	return named.String() + suffix, true
}

// spanning is the compute instance profile that takes so many slices.
var spanning = map[int]int{
	1: nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE,
	2: nvml.COMPUTE_INSTANCE_PROFILE_2_SLICE,
	3: nvml.COMPUTE_INSTANCE_PROFILE_3_SLICE,
	4: nvml.COMPUTE_INSTANCE_PROFILE_4_SLICE,
	6: nvml.COMPUTE_INSTANCE_PROFILE_6_SLICE,
	7: nvml.COMPUTE_INSTANCE_PROFILE_7_SLICE,
	8: nvml.COMPUTE_INSTANCE_PROFILE_8_SLICE,
}

// addProfiles gives a model its profiles and the grid that follows from them.
func addProfiles(m *gpu.Model, profiles []gpu.Profile) {
	m.Profiles = profiles
	for _, p := range profiles {
		m.ComputeSlices = max(m.ComputeSlices, p.ComputeSlices)
		for _, pl := range p.Placements {
			m.MemorySlices = max(m.MemorySlices, pl.End())
		}
	}
	m.Normalize()
}

// instanceNumber reads a GI or CI id, where NVML writes all ones for none.
func instanceNumber(id uint32) int {
	if id == 0xFFFFFFFF {
		return hardware.NoInstance
	}
	return int(id)
}

func migMode(mode int) gpu.MIGMode {
	if mode == nvml.DEVICE_MIG_ENABLE {
		return gpu.MIGEnabled
	}
	return gpu.MIGDisabled
}

// activation reads NVML's two codes of a mode switch.
func activation(status, ret nvml.Return) (hardware.Activation, error) {
	switch {
	case ret == nvml.ERROR_IN_USE:
		return hardware.ActivationInUse, nil
	case ret != nvml.SUCCESS:
		return "", cause(ret)
	}
	switch {
	case status == nvml.SUCCESS:
		return hardware.ActivationDone, nil
	case status == nvml.ERROR_IN_USE:
		return hardware.ActivationInUse, nil
	case status == nvml.ERROR_RESET_REQUIRED:
		return hardware.ActivationResetRequired, nil
	}
	return "", cause(status)
}

// reading is valid only if the call succeeded.
func reading[T uint32 | uint64](v T, ret nvml.Return, scale float64) hardware.Reading {
	switch {
	case ret == nvml.SUCCESS:
		return hardware.Valid(float64(v) * scale)
	case ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_FUNCTION_NOT_FOUND:
		return hardware.Reading{Status: hardware.ReadingUnsupported}
	}
	return hardware.Reading{}
}
