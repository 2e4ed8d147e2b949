// SPDX-License-Identifier: Apache-2.0

// Package hardware is the seam between Reslice and the GPUs of one node: a
// narrow interface in Reslice's own types, with one implementation on NVIDIA's
// NVML (package nvml) and one simulated (package sim). The conformance suite
// in package hardwaretest is what both have to pass.
//
// It exists because NVML's Go binding cannot be faked: some of its calls
// return concrete structs that call C, its mock checks neither overlap nor
// capacity, and calling a symbol that the installed driver lacks ends the
// process. So everything above this package speaks [Node] and nothing else.
//
// It may import gpu and the standard library. Start with [Node]; the errors a
// caller branches on are in errors.go. All methods are safe for concurrent
// use. The simulator and NVML both serialise inside one GPU, so a caller that
// makes several calls in a row must hold its own lock for that GPU.
package hardware
