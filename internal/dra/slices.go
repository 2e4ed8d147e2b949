// SPDX-License-Identifier: Apache-2.0

package dra

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// ResourceSlices renders pools as the API objects that the publishing helper
// of Kubernetes would write: names begin with the slice's position, since the
// scheduler reads slices in the order of their names. The random end of a
// published name is replaced by the GPU, so that equal pools give equal output.
func ResourceSlices(n Node, pools []Pool) []*resourceapi.ResourceSlice {
	var out []*resourceapi.ResourceSlice
	for _, p := range pools {
		for i, s := range p.Slices {
			out = append(out, &resourceapi.ResourceSlice{
				TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceSlice"},
				ObjectMeta: metav1.ObjectMeta{Name: sliceName(i, n, gpuName(p.Index))},
				Spec: resourceapi.ResourceSliceSpec{
					Driver:         n.driver(),
					NodeName:       ptr.To(n.Name),
					Pool:           resourceapi.ResourcePool{Name: p.Name, Generation: 1, ResourceSliceCount: int64(len(p.Slices))},
					SharedCounters: s.SharedCounters,
					Devices:        s.Devices,
				},
			})
		}
	}
	return out
}

// sliceName keeps within the 253 characters of an object name by cutting the
// node's part; the pool in the spec has it whole.
func sliceName(i int, n Node, gpuPart string) string {
	head, tail := fmt.Sprintf("%05x-%s-", i, n.driver()), "-"+gpuPart
	node := n.Name
	if room := 253 - len(head) - len(tail); len(node) > room {
		node = strings.TrimRight(node[:room], "-.")
	}
	return head + node + tail
}
