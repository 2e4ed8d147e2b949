// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"reslice.dev/internal/gpu"
)

// Attributes of a device. Bare names belong to the driver's domain; they are
// NVIDIA's, so that manifests and exporters port by replacing the domain.
const (
	AttrType              = "type"
	AttrUUID              = "uuid"
	AttrParentUUID        = "parentUUID"
	AttrProfile           = "profile"
	AttrProductName       = "productName"
	AttrBrand             = "brand"
	AttrArchitecture      = "architecture"
	AttrComputeCapability = "cudaComputeCapability"
	AttrDriverVersion     = "driverVersion"
	AttrCUDADriverVersion = "cudaDriverVersion"
	AttrAddressingMode    = "addressingMode"

	// Ours.
	AttrSharing        = "sharing"
	AttrPlacementStart = "placementStart"
	AttrTier           = "tier"

	// Standard ones of Kubernetes, with which a claim aligns a GPU with a NIC
	// of another driver.
	AttrPCIBusID = "resource.kubernetes.io/pciBusID"
	AttrPCIeRoot = "resource.kubernetes.io/pcieRoot"
	AttrNUMANode = "resource.kubernetes.io/numaNode"
)

// Values of AttrType.
const (
	TypeGPU     = "gpu"
	TypeMIG     = "mig"
	TypeMonitor = "monitor"
)

// Values of AttrSharing.
const (
	SharedExclusive   = "exclusive"
	SharedMPS         = "mps"
	SharedTimeSlicing = "time-slicing"
)

// maxAttributeLength is the API's limit on string values, in bytes.
const maxAttributeLength = 64

type attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

// setString leaves empty values out and cuts what the API would refuse: one
// over-long product name must not lose the whole slice.
func (a attributes) setString(name, value string) {
	if value == "" {
		return
	}
	value = strings.ToValidUTF8(value, "?")
	if len(value) > maxAttributeLength {
		value = strings.ToValidUTF8(value[:maxAttributeLength], "")
	}
	a[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{StringValue: ptr.To(value)}
}

func (a attributes) setInt(name string, value int) {
	a[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
}

// setVersion publishes a semantic version, padded to three numbers; what
// cannot be read as one is left out.
func (a attributes) setVersion(name, value string) {
	if v, ok := semver(value); ok {
		a[resourceapi.QualifiedName(name)] = resourceapi.DeviceAttribute{VersionValue: ptr.To(v)}
	}
}

// semver turns "580.65.06" into "580.65.6" and "9.0" into "9.0.0": the API
// wants three numbers without leading zeros.
func semver(s string) (string, bool) {
	parts := strings.Split(s, ".")
	if s == "" || len(parts) > 3 {
		return "", false
	}
	for i, p := range parts {
		if p == "" || len(p) > 9 || strings.Trim(p, "0123456789") != "" {
			return "", false
		}
		if parts[i] = strings.TrimLeft(p, "0"); parts[i] == "" {
			parts[i] = "0"
		}
	}
	for len(parts) < 3 {
		parts = append(parts, "0")
	}
	return strings.Join(parts, "."), true
}

// cudaVersion turns NVML's 13010 into "13.1".
func cudaVersion(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", n/1000, n%1000/10)
}

// common are the attributes that every device of a GPU carries.
func common(n Node, g GPU) attributes {
	a := attributes{}
	a.setString(AttrProductName, g.Model.ProductName)
	a.setString(AttrBrand, g.Brand)
	a.setString(AttrArchitecture, string(g.Model.Architecture))
	a.setVersion(AttrComputeCapability, g.Model.ComputeCapability)
	a.setVersion(AttrDriverVersion, n.DriverVersion)
	a.setVersion(AttrCUDADriverVersion, cudaVersion(n.CUDADriverVersion))
	a.setString(AttrAddressingMode, g.AddressingMode)
	a.setString(AttrTier, g.Tier)
	a.setString(AttrPCIBusID, g.PCIBusID)
	a.setString(AttrPCIeRoot, g.PCIeRoot)
	if g.NUMANode >= 0 {
		a.setInt(AttrNUMANode, g.NUMANode)
	}
	return a
}

func gpuAttributes(n Node, g GPU, sharing string) attributes {
	a := common(n, g)
	a.setString(AttrType, TypeGPU)
	a.setString(AttrUUID, string(g.UUID))
	a.setString(AttrParentUUID, string(g.UUID))
	a.setString(AttrSharing, sharing)
	return a
}

func migAttributes(n Node, g GPU, p gpu.Profile, pl gpu.Placement, sharing string) attributes {
	a := common(n, g)
	a.setString(AttrType, TypeMIG)
	a.setString(AttrParentUUID, string(g.UUID))
	a.setString(AttrProfile, p.Name)
	a.setInt(AttrPlacementStart, pl.Start)
	a.setString(AttrSharing, sharing)
	return a
}

func monitorAttributes(n Node, g GPU) attributes {
	a := common(n, g)
	a.setString(AttrType, TypeMonitor)
	a.setString(AttrUUID, string(g.UUID))
	a.setString(AttrParentUUID, string(g.UUID))
	return a
}

// shareStrategy is how a GPU of the model is shared by default: MPS where the
// generation has it, else time-slicing.
func shareStrategy(m *gpu.Model) string {
	if m.Architecture.SupportsMPS() {
		return SharedMPS
	}
	return SharedTimeSlicing
}
