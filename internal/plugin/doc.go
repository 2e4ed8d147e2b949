// SPDX-License-Identifier: Apache-2.0

// Package plugin is the service of the kubelet plugin: it publishes the GPUs
// of a node, prepares and unprepares claims, watches health, and after a
// restart reconciles the hardware with the journal.
//
// It may import gpu, placement, dra, hardware, mps, cdi and journal. It sees
// hardware through its interface only: the program chooses the implementation.
//
// So far it discovers a node's GPUs and describes what they publish; start
// with [Discover]. Preparing claims is not built yet.
package plugin
