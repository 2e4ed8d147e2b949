// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"reslice.dev/internal/gpu"
	"reslice.dev/internal/placement"
)

// Limits of resource.k8s.io/v1 that shape a pool
// (ResourceSliceMaxDevicesWithAdvancedFeatures and neighbours).
const (
	// MaxDevicesPerSlice holds for devices that consume counters.
	MaxDevicesPerSlice = 64
	// maxCounters is the limit of counters in a set and in one consumption.
	maxCounters = 32
)

// Node is what the devices of one node have in common.
type Node struct {
	// Name is the Kubernetes node's name.
	Name string
	// Driver is the DRA driver name; empty means [DriverName].
	Driver string
	// DriverVersion is NVIDIA's driver version, "580.65.06"; empty if unknown.
	DriverVersion string
	// CUDADriverVersion is what the driver supports as NVML encodes it, 13010
	// for 13.1; 0 if unknown.
	CUDADriverVersion int
	GPUs              []GPU
}

// GPU is one GPU of a node together with what the operator wants of it.
type GPU struct {
	gpu.GPU
	// Index is nn in the pool's name: 0..99, assigned once per UUID.
	Index   int
	MIG     MIGPolicy
	Sharing Sharing
	// Tier is the value of the tier attribute; empty publishes none.
	Tier string
	// Mix is the expected mix of requests, which orders the placements; nil
	// means [placement.DefaultMix].
	Mix placement.Mix
	// Held are the devices of this GPU that claims hold. They stay published
	// whatever the settings say; see [ReasonWithdrawn].
	Held []Held
	// Taints keep new claims off devices.
	Taints []Taint
	// Order overrides the order of partitions; nil means [placement.Order].
	// It must list every partition of the model exactly once.
	Order []gpu.Partition
}

// Pool is what one GPU publishes. Slices[0] holds the counters and no devices;
// the others hold devices, in the order in which the scheduler tries them.
type Pool struct {
	Name string
	// Index is the number of the GPU.
	Index  int
	Slices []Slice
	// Devices says what each published device is, by its name.
	Devices map[string]Device
	// Notes are remarks for the log: why a policy could not be followed.
	Notes []string
}

// Slice is one ResourceSlice's content: counters or devices, never both.
type Slice struct {
	SharedCounters []resourceapi.CounterSet
	Devices        []resourceapi.Device
}

// Kind tells what a published device stands for.
type Kind string

// Kinds of device.
const (
	KindGPU     Kind = "gpu"
	KindMIG     Kind = "mig"
	KindMonitor Kind = "monitor"
)

// Device is the meaning of a published device: what prepare has to make.
type Device struct {
	Name string
	GPU  gpu.UUID
	Kind Kind
	// Partition is set for KindMIG.
	Partition gpu.Partition
	// Shared says that several claims can hold the device at once.
	Shared bool
}

// Pools translates a node into its pools, one per GPU, in the order of the
// index. It refuses names, indexes and orders that the API server or the
// scheduler would not accept; the error says what to write instead. Equal
// input gives equal output.
func Pools(n Node) ([]Pool, error) {
	if err := ValidateNames(n.Driver, n.Name); err != nil {
		return nil, err
	}
	var out []Pool
	var errs []error
	gpus := slices.Clone(n.GPUs)
	slices.SortStableFunc(gpus, func(a, b GPU) int { return a.Index - b.Index })
	seen := map[gpu.UUID]bool{}
	for i, g := range gpus {
		if seen[g.UUID] {
			errs = append(errs, fmt.Errorf("two GPUs have the UUID %q", g.UUID))
			continue
		}
		seen[g.UUID] = true
		if i > 0 && gpus[i-1].Index == g.Index {
			errs = append(errs, fmt.Errorf("GPUs %s and %s have the same index %d", gpus[i-1].UUID, g.UUID, g.Index))
			continue
		}
		p, err := pool(n, g)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func (n Node) driver() string {
	if n.Driver == "" {
		return DriverName
	}
	return n.Driver
}

func pool(n Node, g GPU) (Pool, error) {
	if g.Index < 0 || g.Index >= MaxGPUs {
		return Pool{}, fmt.Errorf("GPU %s has the index %d: it must be 0 to %d", g.UUID, g.Index, MaxGPUs-1)
	}
	if g.UUID == "" || len(g.UUID) > maxAttributeLength {
		return Pool{}, fmt.Errorf("GPU %d has the UUID %q: it must have 1 to %d characters", g.Index, g.UUID, maxAttributeLength)
	}
	if g.Model == nil {
		return Pool{}, fmt.Errorf("GPU %s has no model", g.UUID)
	}
	if err := errors.Join(g.Model.Validate(), validateTaints(g.Taints)); err != nil {
		return Pool{}, fmt.Errorf("GPU %s: %w", g.UUID, err)
	}
	b := builder{node: n, gpu: g, offer: OfferOf(g.GPU, g.MIG)}
	b.counters = newCounters(g.Index, g.Model)
	if c := len(b.counters.all()); c > maxCounters {
		return Pool{}, fmt.Errorf("GPU %s: %d counters, the API allows %d", g.UUID, c, maxCounters)
	}
	if b.offer.MIG {
		order, err := partitionOrder(g)
		if err != nil {
			return Pool{}, fmt.Errorf("GPU %s: %w", g.UUID, err)
		}
		b.order = order
	}
	b.build()
	p := Pool{Name: PoolName(n.Name, g.Index), Index: g.Index, Devices: b.meaning}
	for _, note := range b.notes {
		p.Notes = append(p.Notes, fmt.Sprintf("%s: %s", p.Name, note))
	}
	p.Slices = append(p.Slices, Slice{SharedCounters: []resourceapi.CounterSet{b.counters.counterSet()}})
	for chunk := range slices.Chunk(b.devices, MaxDevicesPerSlice) {
		p.Slices = append(p.Slices, Slice{Devices: chunk})
	}
	return p, nil
}

// builder collects the devices of one GPU.
type builder struct {
	node     Node
	gpu      GPU
	offer    Offer
	counters counters
	// order is empty where no MIG devices are offered.
	order   []gpu.Partition
	devices []resourceapi.Device
	meaning map[string]Device
	// withdrawn marks devices that are only published because they are held.
	withdrawn map[string]bool
	notes     []string
}

// build adds exclusive devices first, smallest profile first, then the share
// twins: the scheduler takes the first that fits, and every exclusive device
// is cheaper to check than a shared one.
func (b *builder) build() {
	b.meaning, b.withdrawn = map[string]Device{}, map[string]bool{}
	b.note()
	for _, p := range b.order {
		b.addMIG(p, false)
	}
	if b.offer.Whole {
		b.addGPU(false)
	}
	b.addTwins()
	b.keep()
	b.add(Device{Name: monitorName(b.gpu.Index), Kind: KindMonitor}, resourceapi.Device{
		Attributes: monitorAttributes(b.node, b.gpu),
	})
}

// note remarks settings that this GPU cannot follow.
func (b *builder) note() {
	if b.offer.Note != "" {
		b.notes = append(b.notes, b.offer.Note)
	}
	if s := b.gpu.Sharing; (s == SharingGPU && !b.offer.Whole) || (s == SharingMIG && !b.offer.MIG) {
		b.notes = append(b.notes, fmt.Sprintf("sharing %q offers no shares of this GPU, which is offered %s", s, b.offer))
	}
}

func (b *builder) addTwins() {
	for _, p := range b.order {
		if prof, _ := b.gpu.Model.Profile(p.Profile); b.gpu.Sharing.onMIG() && shareable(prof) {
			b.addMIG(p, true)
		}
	}
	// Where the driver does not say how much memory there is, nothing would
	// bound what shares take.
	if b.offer.Whole && b.gpu.Sharing.onGPU() && b.gpu.Model.MemoryBytes > 0 {
		b.addGPU(true)
	}
}

func (b *builder) add(meaning Device, d resourceapi.Device) {
	meaning.GPU = b.gpu.UUID
	d.Name = meaning.Name
	d.Taints = b.taintsOf(meaning)
	if meaning.Shared {
		d.AllowMultipleAllocations = ptr.To(true)
	}
	b.devices = append(b.devices, d)
	b.meaning[d.Name] = meaning
}

func (b *builder) addGPU(shared bool) {
	m := b.gpu.Model
	meaning := Device{Name: gpuName(b.gpu.Index), Kind: KindGPU, Shared: shared}
	d := resourceapi.Device{ConsumesCounters: b.counters.consumedByGPU()}
	if shared {
		meaning.Name += sharedSuffix
		d.Attributes = gpuAttributes(b.node, b.gpu, shareStrategy(m))
		d.Capacity = shareCapacities(gpu.Share{MemoryBytes: m.MemoryBytes, Multiprocessors: m.Multiprocessors, Clients: b.clients(0)})
	} else {
		d.Attributes = gpuAttributes(b.node, b.gpu, SharedExclusive)
		d.Capacity = exclusiveCapacities(m.MemoryBytes, m.Multiprocessors, gpu.Engines{})
	}
	b.add(meaning, d)
}

func (b *builder) addMIG(p gpu.Partition, shared bool) {
	prof, _ := b.gpu.Model.Profile(p.Profile)
	meaning := Device{Name: deviceName(b.gpu.Index, p), Kind: KindMIG, Partition: p, Shared: shared}
	d := resourceapi.Device{ConsumesCounters: b.counters.consumedBy(prof, p.Placement)}
	if shared {
		meaning.Name += sharedSuffix
		d.Attributes = migAttributes(b.node, b.gpu, prof, p.Placement, shareStrategy(b.gpu.Model))
		d.Capacity = shareCapacities(gpu.Share{MemoryBytes: prof.MemoryBytes, Multiprocessors: prof.Multiprocessors, Clients: b.clients(prof.ComputeSlices)})
	} else {
		d.Attributes = migAttributes(b.node, b.gpu, prof, p.Placement, SharedExclusive)
		d.Capacity = exclusiveCapacities(prof.MemoryBytes, prof.Multiprocessors, prof.Engines)
	}
	b.add(meaning, d)
}

// shareable leaves "+me" and "+me.all" out: their engines are what a tenant
// asks for, and MPS does not share those.
func shareable(p gpu.Profile) bool {
	return p.Variant != gpu.VariantMedia && p.Variant != gpu.VariantAllMedia
}

// clients is the published limit of processes; a time-sliced device has no
// such limit in hardware, so it gets the same number as a plain bound.
func (b *builder) clients(computeSlices int) int {
	if n := b.gpu.Model.MPSClients(b.node.CUDADriverVersion, computeSlices); n > 0 {
		return n
	}
	return gpu.MPSClientsBeforeCUDA131
}
