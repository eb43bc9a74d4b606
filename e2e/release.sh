#!/bin/sh
# Makes a release in the folder dist:
#
#	sh e2e/release.sh [VERSION]
#
# Static binaries for Linux, macOS and Windows on amd64 and arm64 with the version stamped in, a bill of
# materials of each, manual pages, completions, the files of packaging, and checksums of all.
# The same commit and the same release of Go give the same bytes.
set -eu
cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
platforms=${ROWLOCK_PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
out=dist
rm -rf "$out"
mkdir -p "$out"
export CGO_ENABLED=0 GOFLAGS="-trimpath -tags=grpcnotrace"
# The month in manual pages, and the time of each packed file.
export TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

tool=$(mktemp)
# A file left in embedded would be part of each later build, also after Ctrl-C.
trap 'rm -f cmd/rowlock/internal/envtest/embedded/etcd "$tool"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for platform in $platforms; do
	name=rowlock_${version}_$(echo "$platform" | tr / _)
	case $platform in windows/*) name=$name.exe ;; esac
	echo "$name"
	# It embeds the small etcd of test environments.
	GOOS=${platform%/*} GOARCH=${platform#*/} go build -ldflags "-s -w -X main.version=$version" -o cmd/rowlock/internal/envtest/embedded/etcd ./cmd/etcd
	GOOS=${platform%/*} GOARCH=${platform#*/} go build -pgo=cmd/rowlock/load.pgo -ldflags "-s -w -X github.com/rowlock/rowlock/cmd/rowlock/internal/program.Version=$version" -o "$out/$name" ./cmd/rowlock
	go run ./e2e/release "$out/$name" >"$out/$name.spdx.json"
done
rm -f cmd/rowlock/internal/envtest/embedded/etcd

go build -tags release -ldflags "-s -w -X github.com/rowlock/rowlock/cmd/rowlock/internal/program.Version=$version" -o "$tool" ./cmd/rowlock
"$tool" man "$out/man"
mkdir -p "$out/completions"
for shell in bash zsh fish; do
	"$tool" completion "$shell" >"$out/completions/rowlock.$shell"
done
cp -R docs/packaging "$out/packaging"
tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
	-czf "$out/rowlock_${version}_extras.tar.gz" man completions packaging
rm -rf "$out/man" "$out/completions" "$out/packaging"
(cd "$out" && sha256sum -- * >SHA256SUMS)
# A release with a known vulnerability fails. ROWLOCK_VULNCHECK=0 skips the check.
[ "${ROWLOCK_VULNCHECK:-1}" = 0 ] || sh e2e/vulncheck.sh
ls -l "$out"
