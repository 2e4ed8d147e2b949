// SPDX-License-Identifier: Apache-2.0

// Package cdi writes and removes the CDI specifications that give a container
// its devices.
//
// It may import gpu and is the only package that imports the CDI library.
//
// Planned: it holds no code yet. Start with the specification of one prepared
// claim: the file is complete or absent, never half written.
package cdi
