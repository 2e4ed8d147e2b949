// SPDX-License-Identifier: Apache-2.0

// Package usage samples what the workloads of a node use of their GPUs, and
// exports it as metrics.
//
// It may import gpu, hardware and recommend.
//
// Planned: it holds no code yet. Start with one sample: which claim it belongs
// to, and which figures the hardware cannot give.
package usage
