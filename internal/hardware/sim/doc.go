// SPDX-License-Identifier: Apache-2.0

// Package sim simulates the GPUs of a node: real board tables, the driver's
// refusals, its slowness and its faults, with no hardware.
//
// It is the referee of the project. It knows the law ([gpu.Layout] says what
// silicon accepts) and never the policy, so it must not import placement. What
// it accepts, refuses and forgets follows NVML as documented and observed:
// occupied placements answer "insufficient resources", a GPU instance with a
// compute instance is in use, Ampere needs a reset for MIG mode and keeps it
// over a reboot, later boards switch at once and lose it.
//
// The state is one versioned JSON file, so that several processes and restarts
// see the same GPUs; without a path it lives in memory. Start with [NewState]
// and [New], or [Open]. A [Node] is the driver as Reslice sees it; its
// operator's methods (files world*.go) are the rest of the world: other
// people's instances, processes, load, faults, resets and reboots.
//
// Nothing here reads the clock: time comes from [Config].
package sim
