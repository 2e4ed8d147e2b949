// SPDX-License-Identifier: Apache-2.0

package archtest

// modulePath is the prefix of every import inside the project.
const modulePath = "reslice.dev"

// layer orders packages: imports go from a higher layer to a lower one.
type layer int

const (
	core layer = iota
	engine
	translation
	adapter
	service
	tests
)

// pkg is one row of the table. Files that end in _test.go are exempt from
// everything but notInTests.
type pkg struct {
	path  string // below the module's root
	layer layer
	// inside lists the packages of this module that it may import, by path.
	inside []string
	// outside lists the modules or packages that it may import with all that
	// is below them; anyOutside for no limit.
	outside []string
	// std lists all it may import of the standard library; nil for no limit.
	std []string
	// pure packages do not read the clock.
	pure bool
	// notInTests lists packages of this module that even its tests must not
	// import.
	notInTests []string
	// planned packages hold a package comment and nothing else.
	planned bool
}

var anyOutside = []string{""}

// pureStd is what a package can use that decides and never acts. Of time, that
// is the types: checkClock refuses its clock.
var pureStd = []string{
	"cmp", "errors", "fmt", "iter", "maps", "math", "math/bits", "slices", "strconv", "strings", "time",
}

var packages = []pkg{
	{path: "api/reslice.dev/v1alpha1", layer: core, planned: true,
		outside: []string{"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime/pkg/scheme"}},
	{path: "internal/gpu", layer: core, pure: true, std: pureStd},
	{path: "internal/gpu/models", layer: core, pure: true,
		std:    with(pureStd, "bytes", "embed", "encoding/json", "sync"),
		inside: []string{"internal/gpu"}},

	{path: "internal/placement", layer: engine, pure: true, std: pureStd,
		inside: []string{"internal/gpu"}},
	{path: "internal/recommend", layer: engine, pure: true, std: pureStd, planned: true,
		inside: []string{"internal/gpu"}},
	{path: "internal/rebalance", layer: engine, pure: true, std: pureStd, planned: true,
		inside: []string{"internal/gpu", "internal/placement", "internal/recommend"}},

	{path: "internal/dra", layer: translation, pure: true, std: with(pureStd, "sync"), // sync keeps found orders
		inside:  []string{"api/reslice.dev/v1alpha1", "internal/gpu", "internal/placement"},
		outside: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils/ptr"}},

	{path: "internal/hardware", layer: adapter,
		inside: []string{"internal/gpu"}},
	{path: "internal/hardware/nvml", layer: adapter,
		inside:  []string{"internal/gpu", "internal/hardware"},
		outside: []string{"github.com/NVIDIA"}},
	// The simulator is the referee: it shares the law (a gpu.Layout refuses
	// overlaps), never the policy, or both would be wrong in the same way.
	{path: "internal/hardware/sim", layer: adapter,
		inside:     []string{"internal/gpu", "internal/gpu/models", "internal/hardware"},
		outside:    []string{"github.com/gofrs/flock", "github.com/google/renameio/v2"},
		notInTests: []string{"internal/placement"}},
	{path: "internal/hardware/hardwaretest", layer: adapter,
		inside:  []string{"internal/gpu", "internal/gpu/models", "internal/hardware"},
		outside: []string{"github.com/google/go-cmp", "pgregory.net/rapid"}},
	{path: "internal/mps", layer: adapter, planned: true,
		inside: []string{"internal/gpu"}},
	{path: "internal/cdi", layer: adapter, planned: true,
		inside:  []string{"internal/gpu"},
		outside: []string{"tags.cncf.io/container-device-interface"}},
	{path: "internal/journal", layer: adapter, planned: true,
		inside:  []string{"internal/gpu"},
		outside: []string{"github.com/gofrs/flock", "github.com/google/renameio/v2"}},
	{path: "internal/cluster", layer: adapter, outside: anyOutside,
		inside: []string{"api/reslice.dev/v1alpha1", "internal/dra", "internal/gpu",
			"internal/placement", "internal/rebalance", "internal/recommend"}},
	{path: "internal/legacy", layer: adapter, planned: true,
		inside:  []string{"api/reslice.dev/v1alpha1", "internal/dra", "internal/gpu"},
		outside: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/utils/ptr"}},

	{path: "internal/plugin", layer: service, outside: anyOutside,
		inside: []string{"api/reslice.dev/v1alpha1", "internal/cdi", "internal/dra", "internal/gpu",
			"internal/hardware", "internal/journal", "internal/mps", "internal/placement"}},
	{path: "internal/usage", layer: service, planned: true, outside: anyOutside,
		inside: []string{"internal/gpu", "internal/hardware", "internal/recommend"}},
	{path: "internal/controller", layer: service, planned: true, outside: anyOutside,
		inside: []string{"api/reslice.dev/v1alpha1", "internal/cluster", "internal/dra", "internal/gpu",
			"internal/placement", "internal/rebalance", "internal/recommend"}},
	{path: "internal/controller/admission", layer: service, planned: true, outside: anyOutside,
		inside: []string{"api/reslice.dev/v1alpha1", "internal/dra", "internal/gpu", "internal/legacy"}},
	{path: "internal/controller/dashboard", layer: service, planned: true, outside: anyOutside,
		inside: []string{"api/reslice.dev/v1alpha1", "internal/cluster", "internal/gpu",
			"internal/rebalance", "internal/recommend"}},
	{path: "internal/cli", layer: service, planned: true, outside: anyOutside,
		inside: []string{"api/reslice.dev/v1alpha1", "internal/cluster", "internal/dra", "internal/gpu",
			"internal/placement", "internal/rebalance", "internal/recommend"}},

	{path: "internal/archtest", layer: tests, std: []string{}},
}

// only names the few that may import something from outside. It repeats the
// rows on purpose: a package with anyOutside must not get it by accident.
var only = map[string]string{
	"github.com/NVIDIA":                       "internal/hardware/nvml",
	"tags.cncf.io/container-device-interface": "internal/cdi",
}

// commandOnly lists packages that only programs in cmd may import, outside of
// tests: the choice of the hardware is made there and nowhere else.
var commandOnly = []string{"internal/hardware/nvml", "internal/hardware/sim"}

// testOnly lists packages that no program may import.
var testOnly = []string{"internal/archtest", "internal/hardware/hardwaretest"}

// topLevel lists what a newcomer finds at the root.
var topLevel = []string{
	".ci", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "api", "cmd",
	"deployments", "docs", "go.mod", "go.sum", "internal", "scripts", "templates", "test",
}

// module is a Go module that the project is built on.
type module struct {
	path string
	// planned modules are not imported yet.
	planned bool
}

var modules = []module{
	{path: "github.com/NVIDIA/go-nvlib"},
	{path: "github.com/NVIDIA/go-nvml"},
	{path: "github.com/onsi/ginkgo/v2"},
	{path: "github.com/onsi/gomega"},
	{path: "k8s.io/api"},
	{path: "k8s.io/client-go"},
	{path: "k8s.io/dynamic-resource-allocation"},
	{path: "k8s.io/kubelet", planned: true},
	{path: "sigs.k8s.io/controller-runtime"},
	{path: "tags.cncf.io/container-device-interface"},
}

// with returns a copy of list with more behind it.
func with(list []string, more ...string) []string {
	return append(append([]string{}, list...), more...)
}
