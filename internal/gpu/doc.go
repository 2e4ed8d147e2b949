// SPDX-License-Identifier: Apache-2.0

// Package gpu holds the vocabulary of Reslice: GPU models, the MIG profiles
// and placements that divide them, partitions, layouts and shares.
//
// It is the core that every other package imports and that imports nothing but
// a few packages of the standard library: no Kubernetes, no NVML, no clock, no
// disk. Everything is a plain value.
//
// Start with [Model], which says how one product can be divided, and [Layout],
// which is the one place that refuses an illegal division. A [Partition] is
// identified by profile id and placement, never by a name: NVIDIA's driver
// renames profiles between versions (1g.23gb became 1g.24gb on one board), and
// a renamed device that is in use would be handed out twice.
package gpu
