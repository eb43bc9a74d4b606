#!/bin/sh
# The long tests, which CI does not run: nested modules below e2e, which build third-party servers
# from their public modules; packages outside the server (e2e/apart.txt); and all recorded answers
# against the built binary.
set -eu
cd "$(dirname "$0")/.."
export GOFLAGS="-trimpath -tags=grpcnotrace"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# Built with the main module's libraries: the nested modules have newer ones.
CGO_ENABLED=0 go build -o "$dir/rowlock" ./cmd/rowlock
export ROWLOCK_BINARY="${ROWLOCK_BINARY:-$dir/rowlock}"
# A missing program fails a test, and tolerance of slow machines is printed (e2e/needs, e2e/leniency).
export ROWLOCK_CHECK=1 ROWLOCK_LENIENCY="$dir/leniency"
: >"$ROWLOCK_LENIENCY"
ROWLOCK_RECORDED_ALL=1 go test -count=1 -timeout 30m -run '^TestRecordedAnswers$' ./e2e
# Objects of 20 MB, where the check has some of 4 MB.
ROWLOCK_LARGE_OBJECTS=1 go test -count=1 -timeout 30m -run '^TestLargeObjects$' ./e2e
# Recorded answers of later releases, in process.
for release in 1.33 1.34 1.35 1.36; do
    ROWLOCK_RECORDED_RELEASE=$release go test -count=1 -timeout 30m -run ^TestRecorded $(grep -rl 'servertest.Recorded(' --include='*_test.go' server | xargs -n1 dirname | sort -u | sed 's|^|./|')
done
go test -count=1 -timeout 30m $(sed -n 's|^[^#].*|./&/...|p' e2e/apart.txt)
# Two minutes of faults on each store, at the same time.
ROWLOCK_ROBUSTNESS_MINUTES=2 go test -count=1 -timeout 30m -v -run '^TestRobustness$' ./e2e/robustness
# Rolling restarts under load, between this build and one with another migration: an upgrade, a downgrade, and both at once.
echo 'CREATE TABLE IF NOT EXISTS kv_later (n bigint);' >"$dir/later.sql"
printf '{"Replace":{"%s":"%s","%s":"%s"}}' "$PWD/migrations/sqlite/0999_later.up.sql" "$dir/later.sql" \
    "$PWD/migrations/postgres/0999_later.up.sql" "$dir/later.sql" >"$dir/overlay.json"
CGO_ENABLED=0 go build -overlay "$dir/overlay.json" -o "$dir/later" ./cmd/rowlock
for store in sqlite postgres; do
    go run ./e2e/robustness -minutes 1 -store $store -faults restart,kill -binary "$ROWLOCK_BINARY" -other-binary "$dir/later"
done
# A month's turnover, to see that nothing grows.
for store in sqlite postgres; do
    go run ./e2e/robustness/years -minutes 1.25 -store $store -nodes 300 -pods 300 -rate 300 -every 1s -binary "$ROWLOCK_BINARY"
done
# Each planted fault compiles. (That each is found takes hours: go run ./e2e/robustness -planted.)
ROWLOCK_PLANTED=all go test -count=1 -timeout 30m -run '^TestPatchesCompile$' ./e2e/robustness/planted
# Thousands of simulated runs of store, cache, watches and lists, where the check makes 150.
ROWLOCK_SIMULATED_SEEDS=5000 go test -count=1 -timeout 30m ./server/objects/simulated
# Hundreds of damaged copies of a database file, where the check reads a few dozen.
ROWLOCK_FLIPS=600 go test -count=1 -timeout 30m -run TestFlippedBits ./sqlstore/sqlite
# Definitions and samples of other projects, from their public modules.
go vet -tags=grpcnotrace,realworld ./e2e/realworld
go test -tags=grpcnotrace,realworld -count=1 -timeout 30m -v ./e2e/realworld
for module in e2e/*/go.mod; do
    where=${module%/go.mod}
    [ -n "$(find "$where" -name '*_test.go')" ] || continue
    # -mod=mod: their go.mod follows what the main module requires.
    (cd "$where" && go vet -mod=mod ./... && go test -mod=mod -count=1 -timeout 60m ./...)
done
# Every list of every kind, with feature gates on and off, libraries included.
ROWLOCK_LIST_WALK=all CGO_ENABLED=0 go test -vet=off -count=1 -timeout 60m -run '^TestListsAreLinear$' ./server/kinds/builtin
# rowlocktest with each release of controller-runtime that is supported.
sh e2e/controllerruntime.sh
# Clients of other releases, against the binary as this release and as later ones.
sh e2e/clients.sh
# The cost of hostile and slow clients, the delivery of watches, and shutdown, with package net/http alone.
ROWLOCK_TEST_FLAGS=--http2=standard go test -count=1 -timeout 30m -run '^(TestUnreadWatches|TestWatchesOfOneUser|TestEnds.*|TestDrain|TestFairness)$' ./e2e
ROWLOCK_TEST_FLAGS=--http2=standard go test -count=1 -timeout 30m -run '^(TestCosts|TestWaiting|TestPaths)$' \
    -skip '^(TestCosts|TestWaiting)$/^(frames|requests_.*|a_body_that_never_comes|refused_over.*|closed_windows|resets)$' ./e2e/attack
# Attacks on the newest release, with all of its resources.
ROWLOCK_TEST_FLAGS="--emulated-version=1.36 --runtime-config=api/all=true" go test -count=1 -timeout 30m ./e2e/attack
# Two releases of the same commit have the same bytes.
sh e2e/reproducible.sh
# What clients see when a server, PostgreSQL, or a machine under Patroni dies, again and again.
go run ./e2e/robustness/failover -rounds 4
sh e2e/goget.sh
lenient=$(wc -l <"$ROWLOCK_LENIENCY")
if [ "$lenient" -gt 0 ]; then
    echo "Tests expected less of a slow machine $lenient times, of which 10 are borne:"
    cat "$ROWLOCK_LENIENCY"
    [ "$lenient" -le 10 ]
fi
