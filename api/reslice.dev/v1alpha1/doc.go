// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API of Reslice: the parameters that a claim or a
// class can carry, and the custom resources of the rebalancing controller.
//
// It may import the API machinery of Kubernetes and nothing of this module, so
// that other programs can use it.
//
// Planned: it holds no code yet. Start with the parameters of a claim: they
// are read on every node and have to stay readable in later versions.
package v1alpha1
