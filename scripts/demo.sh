#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows what a simulated GPU node would publish, in every MIG mode.
#
# Usage: scripts/demo.sh PLUGIN
set -euo pipefail
plugin=$1

show() {
	echo
	echo "## $1"
	shift
	echo "\$ gpu-kubelet-plugin print-slices $*"
	"$plugin" print-slices "$@"
}

sim=(--hardware=sim --node-name node-a)
show "One H100 with MIG off: the GPU, and shares of it." "${sim[@]}" --sim-gpus 1 --mig off -o table
show "MIG on: every profile at every placement, in the order in which the scheduler tries them." "${sim[@]}" --sim-gpus 1 --mig on -o table
show "An A30 with both, and shares inside MIG instances: all on the same silicon, kept apart by counters." \
	"${sim[@]}" --sim-model a30-24gb --sim-gpus 1 --mig on --sharing all -o table
show "The order follows the expected mix of requests." "${sim[@]}" --sim-gpus 1 --mig on --sharing none --mix 1g=60,4g=20,whole=20 -o table
echo
echo "That is what a node publishes; the same as YAML: -o yaml. See README.md for what works today."
