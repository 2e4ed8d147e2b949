// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"reslice.dev/internal/gpu"
)

// DriverName is the name under which Reslice registers with the kubelet, and
// the domain of its attributes.
const DriverName = "gpu.reslice.dev"

// maxPoolName is the limit of resource.k8s.io on a pool's name.
const maxPoolName = 253

// maxIndex is the largest GPU index: two digits, since pools sort as text.
const maxIndex = 99

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

// validateNames refuses what the API server would refuse, with a message that
// says what to write instead.
func validateNames(driver, node string, index int) error {
	var errs []error
	if msgs := validation.IsDNS1123Subdomain(driver); len(msgs) > 0 || len(driver) > 63 {
		errs = append(errs, fmt.Errorf("driver name %q: write a DNS name of at most 63 characters such as %s (%s)",
			driver, DriverName, strings.Join(msgs, "; ")))
	}
	if msgs := validation.IsDNS1123Subdomain(node); len(msgs) > 0 {
		errs = append(errs, fmt.Errorf("node name %q: write the name of the Kubernetes node, lower case, such as node-a (%s)",
			node, strings.Join(msgs, "; ")))
	}
	if index < 0 || index > maxIndex {
		errs = append(errs, fmt.Errorf("GPU index %d is out of range 0..%d", index, maxIndex))
	}
	if n := len(PoolName(node, index)); n > maxPoolName {
		errs = append(errs, fmt.Errorf("node name %q is too long: the pool name would have %d characters of at most %d", node, n, maxPoolName))
	}
	return errors.Join(errs...)
}
