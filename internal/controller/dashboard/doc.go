// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves the page that shows how the GPUs of a cluster are
// divided, used and about to change.
//
// It may import gpu, recommend, rebalance, cluster and the API types, and only
// reads.
//
// Planned: it holds no code yet. Start with the view of one GPU.
package dashboard
