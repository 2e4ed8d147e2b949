// SPDX-License-Identifier: Apache-2.0

// Package mps starts, limits and stops the MPS control daemons that let
// several containers share one GPU.
//
// It may import gpu.
//
// Planned: it holds no code yet. Start with the request that the plugin sends
// for one shared device: the daemons run in a pod of their own, so that they
// outlive an upgrade of the plugin.
package mps
