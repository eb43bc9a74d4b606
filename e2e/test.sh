#!/bin/sh
# All checks and tests. Installs what they need (PostgreSQL's and MariaDB's servers, nginx, PgBouncer, a C
# compiler for the race detector) where apt-get can; exits non-zero on any failure. Tests
# that fail are told at once, and what comes after them is tested all the same.
#
# Everything runs in a session of its own, so that it ends within seconds, with all that it has
# started, when this script is interrupted.
set -eu
cd "$(dirname "$0")/.."

say() { printf '\n== %s (after %d s)\n' "$*" $(($(date +%s) - began)); }

if [ -z "${ROWLOCK_CHECK_BEGAN:-}" ]; then
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
	echo "All checks and tests: about 15 minutes on two cores, 25 where nothing is compiled yet. Ctrl-C ends it within seconds."
	echo "With the module proxy of Go it fetches the modules of this repository, staticcheck, deadcode and gotestsum, and nothing of it is installed."
	if [ -n "$need" ]; then
		echo "With apt-get it installs$need."
	else
		echo "With apt-get it installs nothing: all that is needed is there."
	fi
	ROWLOCK_CHECK_BEGAN=$(date +%s)
	began=$ROWLOCK_CHECK_BEGAN
	if [ -n "$need" ]; then
		say "installing$need"
		if [ "$(id -u)" = 0 ]; then sudo=""; else sudo="sudo"; fi
		$sudo apt-get update -q
		# The packaged cluster is not wanted: tests start servers of their own.
		DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends $need
	fi

	# However it ends: nothing is left.
	ROWLOCK_CHECK_MADE=$(mktemp -d)
	export ROWLOCK_CHECK_BEGAN ROWLOCK_CHECK_MADE
	session=""
	# members are the processes of the session, whatever group they are in.
	members() {
		for stat in /proc/[0-9]*/stat; do
			{ read -r line <"$stat"; } 2>/dev/null || continue
			pid=${line%% *}
			set -- ${line##*) }
			[ "$4" != "$session" ] || [ "$1" = Z ] || echo "$pid"
		done
	}
	end() {
		code=$?
		trap '' INT TERM HUP
		trap - EXIT
		if [ -n "$session" ]; then
			kill -TERM "$session" $(members) 2>/dev/null || :
			tries=0
			while [ -n "$(members)" ] && [ $tries -lt 30 ]; do
				sleep 0.1
				tries=$((tries + 1))
			done
			kill -KILL $(members) 2>/dev/null || :
			wait "$session" 2>/dev/null || :
		fi
		rm -rf "$ROWLOCK_CHECK_MADE"
		exit "$code"
	}
	trap end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	# What a shell starts in the background ignores interrupts, and so would all that it starts.
	heed=""
	! env --default-signal=INT true 2>/dev/null || heed="env --default-signal=INT,QUIT"
	setsid $heed sh e2e/test.sh &
	session=$!
	wait "$session"
	exit 0
fi
began=$ROWLOCK_CHECK_BEGAN
made=$ROWLOCK_CHECK_MADE
waiting=""

failed=""
tested() { "$@" || failed="$failed
  $*"; }

# tests is go test that names each package when it is done, where go test by itself names them in
# their order. Scripts that are called use it too.
ROWLOCK_GOTEST="$made/gotestsum --format pkgname --"
export ROWLOCK_GOTEST
tests() { $ROWLOCK_GOTEST "$@"; }

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

say "gotestsum"
GOBIN=$made go install gotest.tools/gotestsum@v1.13.0

say "the static binary"
binary=$made/rowlock
go build -o "$binary" ./cmd/rowlock

# Drivers and black-box tests mostly wait, for disks, databases, processes and clocks: they
# run beside one another and beside what computes. Four black-box tests at a time are enough to
# have the processors always wanted.
say "drivers and black-box tests, beside what follows"
(
	(
		unset ROWLOCK_BINARY
		tests -vet=off -timeout 25m ./sqlstore/sqlite ./sqlstore/postgres
	) &
	drivers=$!
	code=0
	ROWLOCK_BINARY=$binary
	export ROWLOCK_BINARY
	tests -vet=off -timeout 30m -parallel 4 ./e2e || code=$?
	wait $drivers && exit $code
) &
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
race() { tests -race -vet=off "$@"; }
tested race -timeout 15m -skip "$steps" $racing
tested race -run 'Gate|Line' ./codecs/budget
tested race -timeout 10m -run 'TestConformance/(Apply|Several|Store|Clocks)' ./sqlstore/sqlite ./sqlstore/postgres
export CGO_ENABLED=0

say "unit tests of what has one goroutine, or only computes"
tested tests -vet=off -timeout 10m $single
tested tests -vet=off -timeout 10m -run "$steps" ./sqlstore/archive/follow ./server ./server/cache

say "kinds and what their tests reach"
tested sh e2e/cover.sh -vet=off -timeout 15m

say "the rest of drivers and black-box tests"
tested wait "$waiting"

if [ -n "$failed" ]; then
	say "failed:$failed"
	exit 1
fi
