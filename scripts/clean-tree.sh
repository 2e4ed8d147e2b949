#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fails if the working tree differs from what is committed, and shows how.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

changes=$(git status --porcelain)
if [ -n "$changes" ]; then
	echo "clean-tree: these files differ from what is committed; commit them:" >&2
	echo "$changes" >&2
	git --no-pager diff >&2
	exit 1
fi
