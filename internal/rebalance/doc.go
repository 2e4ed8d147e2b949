// SPDX-License-Identifier: Apache-2.0

// Package rebalance compares how GPUs are divided with how they are used and
// plans what to change: an ordered list of steps with their reasons, and what
// it refused to do.
//
// It is pure and may import gpu, placement and recommend. A plan is data: the
// controller executes it, the command line prints it, a simulation replays it.
//
// Planned: it holds no code yet. Start with the snapshot that a plan is made
// from, and with the rule that planning on the outcome of a plan finds nothing
// to do.
package rebalance
