// SPDX-License-Identifier: Apache-2.0

// Package admission holds the admission webhooks: they check the parameters of
// claims early, where a user still sees the answer, and rewrite legacy
// requests.
//
// It may import gpu, dra, legacy and the API types.
//
// Planned: it holds no code yet. Start with the validation of a claim's
// parameters: the same code decides on the node.
package admission
