// SPDX-License-Identifier: Apache-2.0

package gpu

// UUID is a device's UUID as NVML prints it: "GPU-..." or "MIG-...". A MIG
// UUID is the same whenever the same placement is created again, so an equal
// UUID does not prove that an instance is still the old one.
type UUID string

// MIGMode is the state of MIG mode on one GPU.
type MIGMode string

// MIG modes of a GPU as read from the driver.
const (
	// MIGUnsupported: the product, or a vGPU guest, has no MIG.
	MIGUnsupported MIGMode = ""
	MIGDisabled    MIGMode = "disabled"
	MIGEnabled     MIGMode = "enabled"
)

// GPU is one physical GPU of a node, as discovered.
type GPU struct {
	UUID UUID
	// Minor is the number N of /dev/nvidiaN. It can change when MIG mode is
	// switched: never an identity.
	Minor int
	// PCIBusID is the address as Linux prints it, "0000:17:00.0".
	PCIBusID string
	// PCIeRoot is the root complex, "pci0000:17"; empty if unknown.
	PCIeRoot string
	// NUMANode is the node nearest to the GPU; -1 if the machine has none.
	NUMANode int
	Model    *Model
	// Brand is NVML's brand name, "Nvidia" or "Tesla"; empty if unknown.
	Brand string
	// MIGMode is the current mode. A change that waits for a reset does not
	// count yet.
	MIGMode MIGMode
	// VGPUGuest says that this is a virtual GPU inside a guest: whole only.
	VGPUGuest bool
	// AddressingMode is NVML's "ATS", "HMM" or "None"; empty if unknown.
	AddressingMode string
}

// Share is a part of a GPU or MIG instance that MPS or time-slicing hands to
// one claim, or all that there is to hand out.
type Share struct {
	// MemoryBytes is the limit of device memory, in bytes.
	MemoryBytes int64
	// Multiprocessors is the number of SMs reserved; 0 reserves none.
	Multiprocessors int
	// Clients is how many client processes may connect.
	Clients int
}

// Most clients that one MPS control daemon serves on a whole GPU (NVIDIA MPS
// documentation): 48, and 60 since CUDA 13.1.
const (
	MPSClientsBeforeCUDA131 = 48
	MPSClientsSinceCUDA131  = 60
)

// MPSClients is the most MPS clients that a device of the model serves.
// driverCUDA is the CUDA version that the driver supports, as NVML encodes it
// (13010 for 13.1). computeSlices is the size of the MIG instance, or 0 for
// the whole GPU: on MIG the limit scales with the compute instance. The result
// is at least 1, and 0 where the generation has no MPS.
func (m *Model) MPSClients(driverCUDA, computeSlices int) int {
	if !m.Architecture.SupportsMPS() {
		return 0
	}
	limit := MPSClientsBeforeCUDA131
	if driverCUDA >= 13010 {
		limit = MPSClientsSinceCUDA131
	}
	if computeSlices <= 0 || m.ComputeSlices <= 0 || computeSlices >= m.ComputeSlices {
		return limit
	}
	return max(1, limit*computeSlices/m.ComputeSlices)
}
