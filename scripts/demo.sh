#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Shows what a simulated GPU node would publish, in the MIG modes.
#
# Usage: scripts/demo.sh PLUGIN
set -euo pipefail
plugin=$1

slices() { "$plugin" print-slices --hardware=sim --node-name node-a -o table "$@"; }

show() {
	echo
	echo "## $1"
	shift
	echo "\$ gpu-kubelet-plugin print-slices --hardware=sim --node-name node-a -o table $*"
	slices "$@"
}

show "One H100 with MIG off: the GPU, and shares of it." --sim-gpus 1 --mig off
show "MIG on: every profile at every placement, in the order in which the scheduler tries them." --sim-gpus 1 --mig on
show "Dynamic: both kinds, kept apart by counters on the same silicon; the mode is switched when a claim needs it." --sim-gpus 1 --mig dynamic --sharing none
show "An A30 in MIG mode with shares inside its instances." --sim-model a30-24gb --sim-gpus 1 --mig on --sharing mig
echo
echo "## The order follows the expected mix of requests: what changes when 3g is common (left: default, right: --mix 1g=50,2g=30,3g=15,whole=5)."
order() { slices --sim-gpus 1 --mig on --sharing none "$@" | awk 'NR > 1 && $4 !~ /[+]/ && $4 != "-" { print $4, $8 }'; }
diff --side-by-side --width 60 <(order) <(order --mix 1g=50,2g=30,3g=15,whole=5) || true
echo
echo "That is what a node publishes; as objects: -o yaml. README.md says what works today."
