// SPDX-License-Identifier: Apache-2.0

// Package journal keeps the record of prepared claims on the disk of a node,
// so that a plugin that was killed at any moment knows what it had begun.
//
// It may import gpu.
//
// Planned: it holds no code yet. Start with the record of one claim: the
// intent is written before the hardware changes, and each released format
// stays readable.
package journal
