#!/bin/sh
# All checks and tests. Installs what they need (PostgreSQL's and MariaDB's servers, nginx, PgBouncer, a C
# compiler for the race detector) where apt-get can; exits non-zero on any failure. Tests
# that fail are told at once, and what comes after them is tested all the same.
set -eu
cd "$(dirname "$0")/.."

began=$(date +%s)
say() { printf '\n== %s (after %d s)\n' "$*" $(($(date +%s) - began)); }

failed=""
tested() { "$@" || failed="$failed
  $*"; }

need=""
[ -n "${ROWLOCK_POSTGRES_BIN:-}" ] || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 || need="$need postgresql"
command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] || need="$need nginx-light"
command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ] || need="$need pgbouncer"
command -v mariadbd >/dev/null 2>&1 || [ -x /usr/sbin/mariadbd ] || need="$need mariadb-server"
command -v prlimit >/dev/null 2>&1 || need="$need util-linux"
command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1 || need="$need prometheus"
command -v docker-compose >/dev/null 2>&1 || need="$need docker-compose"
command -v systemd-analyze >/dev/null 2>&1 || need="$need systemd"
command -v chromium >/dev/null 2>&1 || need="$need chromium"
command -v file >/dev/null 2>&1 || need="$need file"
command -v gcc >/dev/null 2>&1 || need="$need gcc libc6-dev"
if [ -n "$need" ]; then
	say "installing$need"
	if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi
	$sudo apt-get update -q
	# The packaged cluster is not wanted: tests start servers of their own.
	DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends $need
fi

# However it ends: what runs beside is ended with all that it has started, and nothing is left.
made=$(mktemp -d)
waiting=""
end() {
	code=$?
	trap - EXIT
	[ -z "$waiting" ] || kill -- "-$waiting" 2>/dev/null || :
	rm -rf "$made"
	exit "$code"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "gofmt"
files=$(git ls-files '*.go')
unformatted=$(gofmt -l $files)
if [ -n "$unformatted" ]; then
	echo "$unformatted"
	exit 1
fi

# Everything but the race detector reads and compiles what the static binary is made of: what
# they share is compiled once.
. e2e/flags.sh

say "the static binary"
binary=$made/rowlock
go build -o "$binary" ./cmd/rowlock

# Drivers and black-box tests mostly wait, for disks, databases, processes and clocks: they
# run beside one another and beside what computes, and what they print is shown at the end.
# Four black-box tests at a time are enough to have the processors always wanted.
waited=$made/waited
ROWLOCK_BINARY=$binary setsid sh -c '
	env -u ROWLOCK_BINARY go test -vet=off -timeout 25m ./sqlstore/sqlite ./sqlstore/postgres &
	drivers=$!
	go test -vet=off -timeout 30m -parallel 4 ./e2e
	code=$?
	wait $drivers && exit $code
' >"$waited" 2>&1 &
waiting=$!

say "go vet"
go vet ./...

say "staticcheck"
# Deprecated fields of the API are served all the same (SA1019), and messages that
# clients know begin as a stock server's do (ST1005).
GOGC=400 go run honnef.co/go/tools/cmd/staticcheck@v0.8.1 -checks inherit,-SA1019,-ST1005 ./...

say "deadcode"
# Functions that neither a program nor a test calls. Exceptions, with their reasons, stand
# in e2e/deadcode.txt.
dead=$made/dead
go run golang.org/x/tools/cmd/deadcode@v0.48.0 -test ./... >"$dead"
unlisted=$(sed 's/:[0-9]*:[0-9]*: /: /' "$dead" | grep -v -x -F -f e2e/deadcode.txt) || [ $? = 1 ] # 1: all are listed
if [ -n "$unlisted" ]; then
	echo "$unlisted"
	exit 1
fi

# The race detector costs the drivers much of their time, so they run with it on a part of
# their suite and without it on all. Kinds
# start nothing by themselves; their tests are those that count what they reach. Tests that
# have one goroutine (single) cannot race, and of what only computes (plain) the tests of the
# server use all, with the detector: both are tested without it. So are long tests in which
# one thing happens after the other: a backup taken apart byte by byte, piles and watchers of
# many megabytes, every right on every resource.
plain='/authx/meter$|/codecs/(budget|json)$|/server/(schema|apply|convert)(/|$)'
starts='^[[:space:]]+(go|defer go) |\.Go\(|sync\.WaitGroup|errgroup|AfterFunc|\.Parallel\(|RunParallel|httptest|servertest|rowlocktest|harness|net\.Listen|exec\.Command'
packages=$(go list ./... | grep -v -E '/e2e$|/sqlstore/(sqlite|postgres)$|/server/kinds(/|$)')
single=""
racing=""
for package in $packages; do
	dir=.${package#github.com/rowlock/rowlock}
	if echo "$package" | grep -q -E "$plain" || ! grep -q -E "$starts" "$dir"/*.go; then
		single="$single $package"
	else
		racing="$racing $package"
	fi
done
steps='^(TestCutAnywhere|TestFlipAnywhere|TestEveryRevision|TestPile|TestEveryRight|TestNothingIsKeptForSlowWatchers)$'
say "unit tests, with the race detector"
export CGO_ENABLED=1
race() { go test -race -vet=off "$@"; }
tested race -timeout 15m -skip "$steps" $racing
tested race -run 'Gate|Line' ./codecs/budget
tested race -timeout 10m -run 'TestConformance/(Apply|Several|Store|Clocks)' ./sqlstore/sqlite ./sqlstore/postgres
export CGO_ENABLED=0

say "unit tests of what has one goroutine, or only computes"
tested go test -vet=off -timeout 10m $single
tested go test -vet=off -timeout 10m -run "$steps" ./sqlstore/archive/follow ./server ./server/cache

say "kinds and what their tests reach"
tested sh e2e/cover.sh -vet=off -timeout 15m

say "drivers and black-box tests"
tested wait "$waiting"
waiting=""
cat "$waited"

if [ -n "$failed" ]; then
	say "failed:$failed"
	exit 1
fi
