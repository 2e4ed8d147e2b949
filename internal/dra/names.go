// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"reslice.dev/internal/gpu"
)

// DriverName is the name under which Reslice registers with the kubelet, and
// the domain of its attributes.
const DriverName = "gpu.reslice.dev"

// maxPoolName is the limit of resource.k8s.io on a pool's name.
const maxPoolName = 253

// MaxGPUs is how many GPUs a node can number, from 0: two digits, since pools
// sort as text.
const MaxGPUs = 100

// PoolName is the pool of one GPU: "<node>/gpu-<nn>". The scheduler tries
// pools in text order, hence the two digits.
func PoolName(node string, index int) string { return fmt.Sprintf("%s/%s", node, gpuName(index)) }

func gpuName(index int) string { return fmt.Sprintf("gpu-%02d", index) }

// sharedSuffix marks the twin of a device that several claims can hold.
const sharedSuffix = "-shared"

// deviceName names a partition by ids, never by label: labels change with the
// driver, and "1g.24gb+me" and "1g.24gb-me" collide once signs are dropped.
func deviceName(index int, p gpu.Partition) string {
	return fmt.Sprintf("%s-mig-%d-%d", gpuName(index), p.Profile, p.Placement.Start)
}

func monitorName(index int) string { return gpuName(index) + "-monitor" }

// maxDriverName is the limit of resource.k8s.io on a driver's name.
const maxDriverName = 63

// maxNodeName is what a pool's name leaves for the node's.
var maxNodeName = maxPoolName - len(PoolName("", 0))

// ValidateNames refuses what the API server would refuse, with a message that
// says what to write instead. An empty driver name means [DriverName].
func ValidateNames(driver, node string) error {
	var errs []error
	if driver != "" && (len(validation.IsDNS1123Subdomain(driver)) > 0 || len(driver) > maxDriverName) {
		errs = append(errs, fmt.Errorf("driver name %q: write a DNS name in lower case of at most %d characters, such as %s",
			driver, maxDriverName, DriverName))
	}
	switch {
	case len(node) > maxNodeName:
		errs = append(errs, fmt.Errorf("node name of %d characters: at most %d fit into a pool's name", len(node), maxNodeName))
	case len(validation.IsDNS1123Subdomain(node)) > 0:
		errs = append(errs, fmt.Errorf("node name %q: write the name of the Kubernetes node: lower case letters, digits, '-' and '.', such as node-a", node))
	}
	return errors.Join(errs...)
}
