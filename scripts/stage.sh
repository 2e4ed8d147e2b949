#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs one stage of a build and prints how long it took.
# Usage: scripts/stage.sh NAME COMMAND [ARG...]
set -euo pipefail

if [ $# -lt 2 ]; then
	echo "usage: $0 NAME COMMAND [ARG...]" >&2
	exit 2
fi
name=$1
shift

echo "==> $name"
SECONDS=0
status=0
"$@" || status=$?
if [ "$status" -ne 0 ]; then
	echo "<== $name FAILED after ${SECONDS}s (exit status $status)" >&2
	exit "$status"
fi
echo "<== $name ${SECONDS}s"
