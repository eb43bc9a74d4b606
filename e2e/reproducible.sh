#!/bin/sh
# Makes a release of the last commit twice, in clones of different folders, and compares all bytes:
#
#	sh e2e/reproducible.sh
#
# The second one has a build cache of its own, and another home, time zone, language and umask. ROWLOCK_PLATFORMS names the
# platforms (default: this one); ROWLOCK_SHARED_CACHE=1 spares the second compilation, and then compares less.
set -eu
cd "$(dirname "$0")/.."
ROWLOCK_PLATFORMS=${ROWLOCK_PLATFORMS:-$(go env GOOS)/$(go env GOARCH)}
# GOMODCACHE: the content of a module does not depend on the cache.
GOMODCACHE=$(go env GOMODCACHE)
export ROWLOCK_PLATFORMS GOMODCACHE ROWLOCK_VULNCHECK=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$dir/one" "$dir/another folder/with a longer name" "$dir/home"
git clone -q --no-local . "$dir/one/rowlock"
git clone -q --no-local . "$dir/another folder/with a longer name/src"
sh "$dir/one/rowlock/e2e/release.sh" reproducible >"$dir/one/log" 2>&1 || { cat "$dir/one/log"; exit 1; }
cache=$dir/cache
[ -z "${ROWLOCK_SHARED_CACHE:-}" ] || cache=$(go env GOCACHE)
(
	umask 077
	export HOME="$dir/home" GOCACHE="$cache" TZ=Asia/Kathmandu LC_ALL=C USER=somebody GOMAXPROCS=1 GOPATH="$dir/home/go"
	sh "$dir/another folder/with a longer name/src/e2e/release.sh" reproducible >"$dir/log" 2>&1
) || { cat "$dir/log"; exit 1; }
diff -r "$dir/one/rowlock/dist" "$dir/another folder/with a longer name/src/dist" || { echo "e2e/reproducible.sh: two builds of one commit differ" >&2; exit 1; }
cat "$dir/one/rowlock/dist/SHA256SUMS"
echo "Both builds have the same bytes."
