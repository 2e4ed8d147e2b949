// SPDX-License-Identifier: Apache-2.0

// Package placement decides where partitions go: which placements fit, in
// which order to offer them to a scheduler that takes the first that fits, and
// how fragmented a GPU is.
//
// It is pure: values in, values out, the standard library only, the same
// answer for the same question. It may import gpu.
//
// Start with [Order]: what a node publishes, in which order, is the whole
// placement policy of Reslice, because the scheduler takes the first fit.
package placement
