#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs go test with a fixed seed for the packages that have property tests, so
# that a run draws the same cases each time. The others would not know the flag.
#
# Usage: [RAPID_CHECKS=N] scripts/go-test.sh SEED PACKAGES [FLAGS...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seed=$1 patterns=$2
shift 2
seeded=() plain=()
# shellcheck disable=SC2086 # several patterns
while IFS=$'\t' read -r package imports; do
	case " $imports " in
	*" pgregory.net/rapid "*) seeded+=("$package") ;;
	*) plain+=("$package") ;;
	esac
done < <(go list -f '{{.ImportPath}}{{"\t"}}{{join .TestImports " "}} {{join .XTestImports " "}}' $patterns)

status=0
if [ "${#plain[@]}" -gt 0 ]; then
	go test "$@" "${plain[@]}" || status=1
fi
if [ "${#seeded[@]}" -gt 0 ]; then
	go test "$@" "${seeded[@]}" -rapid.seed="$seed" ${RAPID_CHECKS:+-rapid.checks="$RAPID_CHECKS"} || status=1
fi
exit "$status"
