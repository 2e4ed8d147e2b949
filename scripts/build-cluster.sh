#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Kubernetes components of the test cluster from the module
# test/cluster into the user's cache folder, once per version. The folder holds
# one binary and a link to it for each component.
#
# Usage: scripts/build-cluster.sh               build unless built already
#        scripts/build-cluster.sh --print-dir   print the folder, build nothing
set -euo pipefail

components=(etcd kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl)

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=$root/test/cluster
build_pid=
tmp=

die() {
	echo "build-cluster: $*" >&2
	exit 1
}

cleanup() {
	if [ -n "$build_pid" ]; then
		kill "$build_pid" 2>/dev/null || true
	fi
	if [ -n "$tmp" ]; then
		rm -rf "$tmp"
	fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# kubernetes_version prints the version that the module requires, as v1.37.2.
kubernetes_version() {
	awk '$1 == "k8s.io/kubernetes" && $2 ~ /^v/ { print $2; exit }' "$module/go.mod"
}

# cache_key names a build by everything that goes into it: this script for the
# build flags, the module's sources and the compiler.
cache_key() {
	local files hash
	files=$(cd "$module" && find . \( -name go.mod -o -name go.sum -o -name '*.go' \) -type f | LC_ALL=C sort)
	hash=$(
		{
			go -C "$module" env GOVERSION GOOS GOARCH
			sha256sum <"${BASH_SOURCE[0]}"
			while IFS= read -r file; do
				echo "$file"
				sha256sum <"$module/$file"
			done <<<"$files"
		} | sha256sum
	)
	echo "$1-${hash:0:12}"
}

# progress LOG prints how far the build is: go prints one line per package, and
# before that one per module that it downloads.
progress() {
	local packages
	packages=$(grep -vc '^go: ' "$1") || true
	if [ "$packages" -eq 0 ]; then
		echo "$(grep -c '^go: downloading' "$1" || true) modules downloaded, nothing compiled yet"
	else
		echo "$packages packages compiled"
	fi
}

# build VERSION OUTPUT compiles the binary and says every 10 s that it still
# does: a cold build takes minutes and prints nothing of its own.
build() {
	local version=$1 output=$2 log=$tmp/build.log number=${1#v} next=10
	local x=k8s.io/component-base/version
	local ldflags="-s -w -X $x.gitVersion=$version -X $x.gitMajor=${number%%.*} -X $x.gitMinor=$(cut -d. -f2 <<<"$number")"
	ldflags+=" -X $x.gitTreeState=clean -X $x.gitCommit=unknown -X $x.buildDate=1970-01-01T00:00:00Z"

	SECONDS=0
	CGO_ENABLED=0 go -C "$module" build -v -trimpath -buildvcs=false \
		-ldflags "$ldflags" -o "$output" ./cmd/hyperkube >"$log" 2>&1 &
	build_pid=$!
	while kill -0 "$build_pid" 2>/dev/null; do
		sleep 1
		if [ "$SECONDS" -ge "$next" ]; then
			next=$((SECONDS + 10))
			echo "    ${SECONDS}s: $(progress "$log")"
		fi
	done
	local status=0
	wait "$build_pid" || status=$?
	build_pid=
	if [ "$status" -ne 0 ]; then
		tail -n 40 "$log" >&2
		die "the build failed after ${SECONDS}s (the end of its output is above);" \
			"it needs network access to a Go module proxy, about 6 GB of disk and 4 GB of memory"
	fi
}

command -v go >/dev/null || die "Go is not installed; the version needed is in go.mod"
[ -f "$module/go.mod" ] || die "$module/go.mod is missing"
version=$(kubernetes_version)
[ -n "$version" ] || die "$module/go.mod does not require k8s.io/kubernetes"
cache=${XDG_CACHE_HOME:-${HOME:?build-cluster: neither HOME nor XDG_CACHE_HOME is set}/.cache}/reslice/cluster
dir=$cache/$(cache_key "$version")

case ${1:-} in
--print-dir)
	echo "$dir"
	exit 0
	;;
'') ;;
*) die "unknown argument $1; usage: $0 [--print-dir]" ;;
esac

if [ -d "$dir" ]; then
	echo "cluster binaries are up to date: $dir"
	exit 0
fi

mkdir -p "$cache"
tmp=$(mktemp -d "$cache/.build-XXXXXX")
echo "building Kubernetes $version (${components[*]}) into $dir"
echo "    the first build compiles about 3,000 packages and takes some minutes (14 on two idle cores)"
mkdir "$tmp/out"
build "$version" "$tmp/out/hyperkube"
for component in "${components[@]}"; do
	ln -s hyperkube "$tmp/out/$component"
done
# A folder that exists is complete: it appears in one step. Another build may
# have been faster; the result is the same.
mv -T "$tmp/out" "$dir" 2>/dev/null || [ -d "$dir" ] || die "cannot create $dir"
echo "built Kubernetes $version in ${SECONDS}s"
