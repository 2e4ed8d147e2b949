#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target of the main module, one after the other: go test can
# fuzz one target at a time.
# Usage: scripts/fuzz.sh DURATION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

duration=${1:?usage: $0 DURATION, such as 30s}
targets=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' api cmd internal test | LC_ALL=C sort || true)
if [ -z "$targets" ]; then
	echo "fuzz: no fuzz targets found" >&2
	exit 1
fi
while IFS=: read -r file func; do
	name=${func#func }
	echo "fuzzing $name in $(dirname "$file") for $duration"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$duration" "./$(dirname "$file")" </dev/null
done <<<"$targets"
