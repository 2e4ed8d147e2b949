// SPDX-License-Identifier: Apache-2.0

// Package recommend turns the usage history of a workload into the size that
// it needs: a lower bound, a target and an upper bound, how sure that is, and
// why.
//
// It is pure and may import gpu: samples and the present time are arguments,
// the reasons are part of the result.
//
// Planned: it holds no code yet. Start with the histogram of one workload's
// samples, which everything else is computed from.
package recommend
