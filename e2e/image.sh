#!/bin/sh
# Builds the image of the Dockerfile with buildah, without a registry, and runs it, on machines
# without a container engine. The base of the build stage consists of this machine's programs,
# libraries and Go. One of the long tests; it needs root, and takes minutes.
set -eu
cd "$(dirname "$0")/.."
command -v buildah >/dev/null 2>&1 || {
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends buildah
}
work=$(mktemp -d)
cleanup() {
	[ -z "${server-}" ] || kill "$server" 2>/dev/null || true
	buildah --storage-driver vfs --root "$work/root" --runroot "$work/run" rm --all >/dev/null 2>&1 || true
	rm -rf "$work"
}
trap cleanup EXIT
b="buildah --storage-driver vfs --root $work/root --runroot $work/run"

base=$work/base
mkdir -p "$base/tree/usr" "$base/tree/tmp" "$base/tree/etc/ssl/certs" "$base/tree/go/cache" "$base/tree/go/mod"
for dir in bin lib lib64; do
	if [ -L "/$dir" ]; then ln -s "$(readlink "/$dir")" "$base/tree/$dir"; else mkdir "$base/tree/$dir"; fi
done
cp /etc/ssl/certs/ca-certificates.crt "$base/tree/etc/ssl/certs/"
cat >"$base/Dockerfile" <<EOF
FROM scratch
COPY tree /
ENV PATH=$(go env GOROOT)/bin:/usr/bin:/bin GOMODCACHE=/go/mod GOCACHE=/go/cache GOTOOLCHAIN=local
EOF
$b bud -q -t "docker.io/library/$(sed -n 's/^FROM \(golang:[^ ]*\) .*/\1/p' Dockerfile)" "$base"

git archive HEAD | { mkdir "$work/src" && tar -x -C "$work/src"; }
$b bud -q --isolation chroot --pull-never --build-arg VERSION=v0.0.0-image -v /usr:/usr:ro \
	-v "$(go env GOMODCACHE):/go/mod" -v "$(go env GOCACHE):/go/cache" -t rowlock "$work/src"

container=$($b from --pull-never rowlock)
$b run --isolation chroot "$container" -- /rowlock version | grep -q 'v0.0.0-image'
# As the image runs: its user, its command, its volume.
# shellcheck disable=SC2046
$b run --isolation chroot "$container" -- $($b inspect --format '{{join .OCIv1.Config.Entrypoint " "}} {{join .OCIv1.Config.Cmd " "}}' "$container") \
	--secure-port 16443 >"$work/log" 2>&1 &
server=$!
for _ in $(seq 300); do
	[ "$(curl -sk https://127.0.0.1:16443/readyz || true)" = ok ] && break
	kill -0 "$server" || { cat "$work/log"; exit 1; }
	sleep 0.2
done
[ "$(curl -sk https://127.0.0.1:16443/readyz)" = ok ]
echo "the image is built, and serves"
