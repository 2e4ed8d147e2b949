// SPDX-License-Identifier: Apache-2.0

// Package cluster turns API objects into questions that the engines can ask,
// above all: would this claim fit, and where would it go?
//
// The answer comes from the allocator that kube-scheduler itself runs, never
// from an imitation of it. The package may import dra, the engines and gpu,
// and the Kubernetes libraries; it keeps no connection to a cluster of its own.
//
// Start with [WhatIf].
package cluster
