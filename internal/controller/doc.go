// SPDX-License-Identifier: Apache-2.0

// Package controller executes plans: it takes a snapshot of the cluster, has a
// plan made, checks each step again just before it acts, and keeps the plan in
// the API before the first side effect.
//
// It may import gpu, placement, dra, recommend, rebalance, cluster and the API
// types.
//
// Planned: it holds no code yet. Start with the reconciler of a plan in
// progress, since it has to continue what an earlier process began.
package controller
