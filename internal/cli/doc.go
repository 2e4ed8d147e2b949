// SPDX-License-Identifier: Apache-2.0

// Package cli holds the commands of the kubectl plugin.
//
// It may import gpu, placement, dra, recommend, rebalance, cluster and the API
// types. The commands compute with the same packages as the controller, so
// that both give one answer.
//
// Planned: it holds no code yet. Start with the command that shows the GPUs of
// a cluster.
package cli
