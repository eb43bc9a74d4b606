#!/bin/sh
# Makes cmd/rowlock/load.pgo, the profile for the compiler, from a run of the benchmark with writes,
# gets and lists, over both protocols, on SQLite and, if its server is installed, on PostgreSQL. It
# takes five minutes.
#
#	sh e2e/pgo.sh [SECONDS]        of each load; 4 by default
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-4}
profile=cmd/rowlock/load.pgo
largest=300000 # bytes: it is in every clone, with all its versions
export CGO_ENABLED=0 GOFLAGS="-trimpath -tags=grpcnotrace"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
go build -o "$dir/rowlock" ./cmd/rowlock
go build -o "$dir/bench" ./e2e/bench

n=0
load() {
	n=$((n + 1))
	mkdir "$dir/$n"
	ROWLOCK_BINARY=$dir/rowlock "$dir/bench" -seconds "$seconds" -profiles "$dir/$n" "$@"
}
writes='^(create|status|leases|apply)$'
for protocol in -http2 -http2=false; do
	load $protocol -run "$writes|^get\$"
	if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
		load $protocol -store postgres -run "$writes"
	fi
done
load -run '^lists$'

# A profile names the file of the program. Its texts follow their lengths, which must not change.
go tool pprof -proto -output "$dir/merged.pb.gz" "$dir"/*/cpu-*.pb.gz
anywhere=$(printf "%${#dir}s" "" | tr ' ' '/')
gzip -dc "$dir/merged.pb.gz" | LC_ALL=C sed "s|$dir|$anywhere|g" | gzip -9n >"$dir/load.pgo"
size=$(wc -c <"$dir/load.pgo")
if [ "$size" -gt $largest ]; then
	echo "the profile has $size bytes, more than $largest: take fewer SECONDS" >&2
	exit 1
fi
cp "$dir/load.pgo" "$profile"
echo "$profile: $size bytes"
