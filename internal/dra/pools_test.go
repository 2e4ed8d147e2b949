// SPDX-License-Identifier: Apache-2.0

package dra_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
	"tags.cncf.io/container-device-interface/pkg/parser"

	"reslice.dev/internal/dra"
	"reslice.dev/internal/gpu"
	"reslice.dev/internal/gpu/models"
)

func TestOfferFollowsTheModeTable(t *testing.T) {
	h100, a100, t4 := mustModel(t, "h100-80gb"), mustModel(t, "a100-40gb"), mustModel(t, "t4-16gb")
	for name, tc := range map[string]struct {
		model      *gpu.Model
		mode       gpu.MIGMode
		vgpu       bool
		policy     dra.MIGPolicy
		whole, mig bool
		note       string
	}{
		"Ampere off":               {a100, gpu.MIGDisabled, false, dra.MIGAuto, true, false, ""},
		"Ampere on":                {a100, gpu.MIGEnabled, false, dra.MIGAuto, false, true, ""},
		"Ampere off, wanted on":    {a100, gpu.MIGDisabled, false, dra.MIGOn, true, false, "needs a reset"},
		"Ampere on, wanted off":    {a100, gpu.MIGEnabled, false, dra.MIGOff, false, true, "needs a reset"},
		"Ampere, dynamic":          {a100, gpu.MIGEnabled, false, dra.MIGDynamic, false, true, "needs a reset"},
		"Hopper off":               {h100, gpu.MIGDisabled, false, dra.MIGAuto, true, false, ""},
		"Hopper on":                {h100, gpu.MIGEnabled, false, dra.MIGAuto, false, true, ""},
		"Hopper wanted off":        {h100, gpu.MIGEnabled, false, dra.MIGOff, true, false, ""},
		"Hopper wanted on":         {h100, gpu.MIGDisabled, false, dra.MIGOn, false, true, ""},
		"Hopper dynamic":           {h100, gpu.MIGDisabled, false, dra.MIGDynamic, true, true, ""},
		"vGPU guest":               {h100, gpu.MIGUnsupported, true, dra.MIGDynamic, true, false, "vGPU guest"},
		"profiles unknown, MIG on": {mustModel(t, "b300-269gb"), gpu.MIGEnabled, false, dra.MIGAuto, false, false, "only its monitor"},
		"board without MIG":        {t4, gpu.MIGUnsupported, false, dra.MIGAuto, true, false, ""},
		"profiles unknown, asked":  {mustModel(t, "b300-269gb"), gpu.MIGUnsupported, false, dra.MIGOn, true, false, "not known"},
		"board without MIG, asked": {t4, gpu.MIGUnsupported, false, dra.MIGOn, true, false, "has no MIG"},
	} {
		t.Run(name, func(t *testing.T) {
			got := dra.OfferOf(gpu.GPU{UUID: "GPU-x", Model: tc.model, MIGMode: tc.mode, VGPUGuest: tc.vgpu}, tc.policy)
			if got.Whole != tc.whole || got.MIG != tc.mig || !strings.Contains(got.Note, tc.note) || (tc.note == "") != (got.Note == "") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// nodes draws nodes of 1 to 16 GPUs, of any board, in any setting.
func drawNode(t *rapid.T) dra.Node {
	var gpus []dra.GPU
	for i := range rapid.IntRange(1, 16).Draw(t, "GPUs") {
		m := rapid.SampledFrom(models.All()).Draw(t, "model")
		gpus = append(gpus, oneGPU(i, m,
			rapid.SampledFrom([]dra.MIGPolicy{dra.MIGAuto, dra.MIGOff, dra.MIGOn, dra.MIGDynamic}).Draw(t, "MIG"),
			rapid.SampledFrom([]dra.Sharing{dra.SharingNone, dra.SharingGPU, dra.SharingMIG, dra.SharingAll}).Draw(t, "sharing")))
	}
	return nodeOf(gpus...)
}

func TestPoolsKeepTheRulesOfTheAPI(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t)
		pools := mustPools(t, n)
		if !equality.Semantic.DeepEqual(pools, mustPools(t, n)) {
			t.Fatal("equal nodes publish differently")
		}
		if len(pools) != len(n.GPUs) {
			t.Fatalf("%d pools for %d GPUs", len(pools), len(n.GPUs))
		}
		for _, p := range pools {
			checkPool(t, p)
		}
		if !slices.IsSortedFunc(pools, func(a, b dra.Pool) int { return strings.Compare(a.Name, b.Name) }) {
			t.Fatal("pools are not in the order in which the scheduler reads them")
		}
	})
}

func checkPool(t tb, p dra.Pool) {
	sets, names := map[string]map[string]resourceapi.Counter{}, map[string]bool{}
	for i, s := range p.Slices {
		if len(s.Devices) > dra.MaxDevicesPerSlice || (len(s.Devices) > 0 && len(s.SharedCounters) > 0) {
			t.Fatalf("%s slice %d: %d devices, %d counter sets", p.Name, i, len(s.Devices), len(s.SharedCounters))
		}
		for _, c := range s.SharedCounters {
			sets[c.Name] = c.Counters
		}
		for _, d := range s.Devices {
			if names[d.Name] {
				t.Fatalf("%s: %s is published twice", p.Name, d.Name)
			}
			names[d.Name] = true
			checkDevice(t, p, d, sets)
		}
	}
	if len(names) != len(p.Devices) {
		t.Fatalf("%s: %d devices published, %d explained", p.Name, len(names), len(p.Devices))
	}
}

func checkDevice(t tb, p dra.Pool, d resourceapi.Device, sets map[string]map[string]resourceapi.Counter) {
	if len(d.Attributes)+len(d.Capacity) > 32 {
		t.Fatalf("%s: %d attributes and capacities", d.Name, len(d.Attributes)+len(d.Capacity))
	}
	// The device's name becomes part of a CDI device name.
	if err := parser.ValidateDeviceName(d.Name); err != nil {
		t.Fatalf("%s is no CDI name: %v", d.Name, err)
	}
	monitor := p.Devices[d.Name].Kind == dra.KindMonitor
	if monitor != (len(d.ConsumesCounters) == 0) {
		t.Fatalf("%s: consumes %v", d.Name, d.ConsumesCounters)
	}
	for _, c := range d.ConsumesCounters {
		for name, v := range c.Counters {
			have, ok := sets[c.CounterSet][name]
			if !ok || v.Value.Cmp(have.Value) > 0 {
				t.Fatalf("%s takes %v of %s/%s, of which there is %v", d.Name, v, c.CounterSet, name, have)
			}
		}
	}
	for name, c := range d.Capacity {
		if c.Value.Sign() <= 0 {
			t.Fatalf("%s: capacity %s is %s", d.Name, name, c.Value.String())
		}
		if p.Devices[d.Name].Shared != (c.RequestPolicy != nil) {
			t.Fatalf("%s: capacity %s has policy %v", d.Name, name, c.RequestPolicy)
		}
	}
}

// TestCountersAreAsFewAsConstrainSomething pins the counters of each board:
// one more would cost every node filter of the scheduler.
func TestCountersAreAsFewAsConstrainSomething(t *testing.T) {
	want := map[string]string{
		"a30-24gb": "compute-slices ofa-engines", "rtxpro6000-96gb": "compute-slices jpeg-engines ofa-engines",
	}
	for _, m := range withMIG(t) {
		p := mustPools(t, nodeOf(oneGPU(0, m, dra.MIGOn, dra.SharingAll)))[0]
		var got []string
		for name := range p.Slices[0].SharedCounters[0].Counters {
			if !strings.HasPrefix(name, "memory-slice-") {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		w := want[m.ID]
		if w == "" {
			w = "compute-slices ofa-engines"
		}
		if strings.Join(got, " ") != w {
			t.Errorf("%s: counters %v, want %s", m.ID, got, w)
		}
	}
}

func TestMistakesAreRefusedWithWhatToWrite(t *testing.T) {
	h100 := mustModel(t, "h100-80gb")
	ok := oneGPU(0, h100, dra.MIGOn, dra.SharingNone)
	for name, tc := range map[string]struct {
		change func(*dra.Node)
		want   string
	}{
		"node name in capitals": {func(n *dra.Node) { n.Name = "Node_A" }, "lower case"},
		"no node name":          {func(n *dra.Node) { n.Name = "" }, "node-a"},
		"endless node name":     {func(n *dra.Node) { n.Name = strings.Repeat("a.", 124) + "abc" }, "at most 246"},
		"driver name":           {func(n *dra.Node) { n.Driver = "gpu/reslice" }, dra.DriverName},
		"index out of range":    {func(n *dra.Node) { n.GPUs[0].Index = 100 }, "0 to 99"},
		"index twice": {func(n *dra.Node) {
			n.GPUs = append(n.GPUs, n.GPUs[0])
			n.GPUs[1].UUID = "GPU-other"
		}, "same index"},
		"UUID twice":  {func(n *dra.Node) { n.GPUs = append(n.GPUs, n.GPUs[0]) }, "two GPUs"},
		"no UUID":     {func(n *dra.Node) { n.GPUs[0].UUID = "" }, "1 to 64"},
		"no model":    {func(n *dra.Node) { n.GPUs[0].Model = nil }, "no model"},
		"taint":       {func(n *dra.Node) { n.GPUs[0].Taints = []dra.Taint{{Reason: "not a label", Effect: "NoSchedule"}} }, "as labels"},
		"effect":      {func(n *dra.Node) { n.GPUs[0].Taints = []dra.Taint{{Reason: "xid", Effect: "Never"}} }, "NoExecute"},
		"short order": {func(n *dra.Node) { n.GPUs[0].Order = []gpu.Partition{} }, "exactly once"},
	} {
		t.Run(name, func(t *testing.T) {
			n := nodeOf(ok)
			tc.change(&n)
			if _, err := dra.Pools(n); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
		})
	}
}

// TestUnknownFiguresAreLeftOut covers boards whose memory or SM count the
// driver does not say.
func TestUnknownFiguresAreLeftOut(t *testing.T) {
	m := *mustModel(t, "t4-16gb")
	m.MemoryBytes, m.Multiprocessors = 0, 0
	for _, p := range mustPools(t, nodeOf(oneGPU(0, &m, dra.MIGAuto, dra.SharingAll))) {
		for _, s := range p.Slices {
			for _, d := range s.Devices {
				if len(d.Capacity) > 0 || p.Devices[d.Name].Shared {
					t.Errorf("%s: capacity %v, shared %v", d.Name, d.Capacity, p.Devices[d.Name].Shared)
				}
			}
		}
	}
}

// TestSettingsWithoutEffectAreNoted: the default says nothing, a wish that a
// GPU cannot follow does.
func TestSettingsWithoutEffectAreNoted(t *testing.T) {
	h100, a100 := mustModel(t, "h100-80gb"), mustModel(t, "a100-40gb")
	for _, tc := range []struct {
		gpu  dra.GPU
		want string
	}{
		{oneGPU(0, h100, dra.MIGOn, ""), ""},
		{oneGPU(0, h100, dra.MIGOn, dra.SharingGPU), "offered as MIG devices"},
		{oneGPU(0, h100, dra.MIGOff, dra.SharingMIG), "offered whole"},
		{oneGPU(0, h100, dra.MIGDynamic, dra.SharingMIG), ""},
		{oneGPU(0, a100, dra.MIGAuto, ""), ""},
		{dra.GPU{GPU: oneGPU(0, a100, dra.MIGOff, "").GPU, MIG: dra.MIGOn}, "-mig 1 and then"},
		{dra.GPU{GPU: oneGPU(0, a100, dra.MIGOn, "").GPU, MIG: dra.MIGOff}, "-mig 0 and then"},
	} {
		notes := strings.Join(mustPools(t, nodeOf(tc.gpu))[0].Notes, "\n")
		if (tc.want == "") != (notes == "") || !strings.Contains(notes, tc.want) {
			t.Errorf("%s, %q, %q: notes %q, want %q", tc.gpu.Model.ID, tc.gpu.MIG, tc.gpu.Sharing, notes, tc.want)
		}
	}
}

// TestNamesStayWhenTheDriverRenamesAProfile: a renamed device that is in use
// would give its counters back and be handed out twice.
func TestNamesStayWhenTheDriverRenamesAProfile(t *testing.T) {
	before := mustModel(t, "gb200-186gb")
	after := *before
	after.Profiles = slices.Clone(before.Profiles)
	for i := range after.Profiles {
		after.Profiles[i].Name = strings.Replace(after.Profiles[i].Name, "23gb", "24gb", 1)
	}
	names := func(m *gpu.Model) string {
		var out []string
		for _, s := range mustPools(t, nodeOf(oneGPU(0, m, dra.MIGOn, dra.SharingAll)))[0].Slices {
			for _, d := range s.Devices {
				out = append(out, fmt.Sprint(d.Name, d.ConsumesCounters))
			}
		}
		return strings.Join(out, "\n")
	}
	if names(before) != names(&after) {
		t.Error("a new label changed names, counters or order")
	}
}
