// SPDX-License-Identifier: Apache-2.0

// Package legacy translates requests in the style of older device plugins,
// extended resources and annotations, into claims.
//
// It may import gpu, dra and the API types; it does no I/O, so that admission
// decides and this package only translates.
//
// Planned: it holds no code yet. Start with the table of resource names that
// it understands.
package legacy
