// SPDX-License-Identifier: Apache-2.0

// Package dra translates between Reslice's own types and resource.k8s.io: the
// pools, counters and devices that a node publishes, the DeviceClasses that
// select them, and allocation results read back.
//
// It does no I/O and may import gpu, placement and the API types of
// Kubernetes. It builds names but never parses them: identity travels as GPU
// UUID, profile id and placement.
//
// Start with [Pools], which decides everything that the scheduler will see.
package dra
