#!/bin/sh
# All checks and tests, in three lanes: lint (formatting, vet, staticcheck, deadcode), unit (the tests in the
# packages, most with the race detector) and blackbox (the built binary, and the drivers).
#
#	sh e2e/test.sh [lint] [unit] [blackbox]
#
# Without an argument all lanes run, blackbox at the same time as the others. Installs the programs that tests
# need (PostgreSQL's and MariaDB's servers, nginx, PgBouncer, a C compiler for the race detector, ...) if
# apt-get can; exits non-zero on any failure. It shows failures at once, and continues. ROWLOCK_CHECK_ALL=1
# tests all packages in e2e/apart.txt, changed or not.
#
# Everything runs in a session of its own, so that it ends within seconds, with all that it has
# started, when this script is interrupted.
set -eu
cd "$(dirname "$0")/.."

lanes=${*:-lint unit blackbox}
for lane in $lanes; do
	case $lane in
	lint | unit | blackbox) ;;
	*)
		echo "e2e/test.sh: there is no lane $lane: lint, unit, blackbox" >&2
		exit 2
		;;
	esac
done
has() { case " $lanes " in *" $1 "*) return 0 ;; esac; return 1; }
say() { printf '\n== %s (after %d s)\n' "$*" $(($(date +%s) - began)); }

if [ -z "${ROWLOCK_CHECK_BEGAN:-}" ]; then
	need=""
	# wants notes a Debian package whose program is missing.
	wants() {
		package=$1
		shift
		for program in "$@"; do
			! command -v "$program" >/dev/null 2>&1 && [ ! -x "/usr/sbin/$program" ] || continue
			need="$need $package"
			return
		done
	}
	if has unit || has blackbox; then
		[ -n "${ROWLOCK_POSTGRES_BIN:-}" ] || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || wants postgresql initdb
		wants mariadb-server mariadbd
	fi
	if has unit; then
		wants "gcc libc6-dev" gcc
	fi
	if has blackbox; then
		wants nginx-light nginx
		wants pgbouncer pgbouncer
		wants util-linux prlimit
		wants prometheus prometheus promtool
		wants docker-compose docker-compose
		wants systemd systemd-analyze
		wants chromium chromium
		wants file file
		wants bsdutils script
	fi
	echo "Lanes: $lanes. All three take 12 to 15 minutes on two cores, 15 to 20 where nothing is compiled yet. Ctrl-C ends them within seconds."
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

	# It leaves nothing behind, however it ends.
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
	# Background processes of a shell ignore interrupts, and so would their children.
	heed=""
	! env --default-signal=INT true 2>/dev/null || heed="env --default-signal=INT,QUIT"
	setsid $heed sh e2e/test.sh $lanes &
	session=$!
	wait "$session"
	exit 0
fi
began=$ROWLOCK_CHECK_BEGAN
made=$ROWLOCK_CHECK_MADE

# A missing program fails a test here, where it otherwise skips it (e2e/needs). Each tolerance of a slow
# machine adds a line to this file (e2e/leniency).
ROWLOCK_CHECK=1 ROWLOCK_LENIENCY=$made/leniency
export ROWLOCK_CHECK ROWLOCK_LENIENCY
mostLenient=10
: >"$ROWLOCK_LENIENCY"

# tested runs a step of a lane. It records a failure in a file of the lane, and the lane continues.
tested() { "$@" || printf '  %s\n' "$*" >>"$made/failed.$lane"; }

# tests runs go test, and names each package when it is done, where go test keeps their order. Called
# scripts use it, too.
ROWLOCK_GOTEST="$made/gotestsum --format pkgname --"
export ROWLOCK_GOTEST
tests() { $ROWLOCK_GOTEST "$@"; }
race() { CGO_ENABLED=1 $ROWLOCK_GOTEST -race -vet=off "$@"; }

# All steps except those with the race detector share the packages of the static binary, which are
# compiled once.
. e2e/flags.sh

formatted() {
	unformatted=$(gofmt -l $(git ls-files '*.go'))
	[ -z "$unformatted" ] || { echo "$unformatted"; return 1; }
}

# The server serves deprecated fields of the API (SA1019), and messages that clients know begin as
# those of a stock server (ST1005).
staticcheck() { GOGC=400 go run honnef.co/go/tools/cmd/staticcheck@v0.8.1 -checks inherit,-SA1019,-ST1005 ./...; }

# Functions that neither a program nor a test calls. e2e/deadcode.txt has the exceptions, with reasons.
deadcode() {
	GOGC=400 go run golang.org/x/tools/cmd/deadcode@v0.48.0 -test ./... >"$made/dead" || return 1
	unlisted=$(sed 's/:[0-9]*:[0-9]*: /: /' "$made/dead" | grep -v -x -F -f e2e/deadcode.txt) || [ $? = 1 ] # 1: all are listed
	[ -z "$unlisted" ] || { echo "$unlisted"; return 1; }
}

lint() {
	say "gofmt"
	tested formatted
	say "go vet"
	tested go vet ./...
	say "staticcheck"
	tested staticcheck
	say "deadcode"
	tested deadcode
}

# The race detector runs the tests that e2e/race.txt names. It makes drivers much slower, so a part of their
# suite runs with it, and all of it without (lane blackbox). Long sequential tests run without it: a backup
# taken apart byte by byte, piles, objects and watchers of many megabytes, every right on every resource, lists
# of many megabytes or levels in every form, every kind of write sent twice, every verb of every resource,
# packing, indexes and selectors of thousands of objects, random objects of every kind that are written and applied.
steps='^(TestCutAnywhere|TestFlipAnywhere|TestEveryRevision|TestPile|TestEveryRight|TestNothingIsKeptForSlowWatchers|Test(Packed|PagesOf|WritesDuring)?LongLists(OnSQLite)?|TestDryRunsOf(RecordedWrites|CustomVersions)|TestPretty(Forms|Deep)|TestLargeFieldSets|Test(Plans|Reapply)Equals?Library|TestPack(RestsWhileIt(Packs|Looks)|EndsWhileItRests|InAHurry)|TestPostingsAre(TheModel|ChangedWhereTheyLie)|TestFilledPostings|TestAlikeAreLookedAtOnce|TestLongHead|TestReenter|TestSelectorsOfManyTerms|TestDictionaryFollowsTheObjects|TestFormsOfWhatIsUnpackedMeanwhile|TestValuesOfABrokenFile|TestLargeEventsFromTheDatabase|TestLargeEventsThatAreSent|TestAuditedLarge|TestPlainClients|TestLargeObjects(AndWebhooks|Sealed|Elsewhere)|TestPoliciesOfLargeObjects)$'
unit() {
	slowest="./server ./server/cache ./server/verbs" # started first, so that the others do not wait for them
	racing="$slowest $(sed -n 's|^race \([^ :]*\).*|./\1|p' e2e/race.txt)"
	sh e2e/apart.sh >"$made/apart"
	printf '%s\n' $racing $(cat "$made/apart") >"$made/elsewhere"
	plain=$(go list ./... | sed 's|^github.com/rowlock/rowlock|.|' | grep -v -E '^\./(e2e|e2e/attack|e2e/robustness|sqlstore/(sqlite|postgres)|server/kinds(/.*)?)$' | grep -v -x -F -f "$made/elsewhere")
	say "unit tests, with the race detector"
	tested race -timeout 10m -run 'TestConformance/(Apply|Several|Store|Clocks|Large)' ./sqlstore/sqlite ./sqlstore/postgres & # they mostly wait
	conformance=$!
	tested race -p 3 -timeout 15m -skip "$steps" $racing # three at a time, on two cores: some of them wait
	wait $conformance
	say "unit tests, without it; these have not changed, nor what they use: $(tr '\n' ' ' <"$made/apart")"
	tested tests -p 3 -vet=off -timeout 10m $plain
	tested tests -vet=off -timeout 10m -run "$steps" ./sqlstore/archive/follow ./server ./server/apply/ownership ./server/cache ./server/verbs
	say "kinds and what their tests reach"
	tested sh e2e/cover.sh -vet=off -timeout 15m
}

# Drivers and black-box tests mostly wait, for disks, databases, processes and clocks, so they run
# concurrently with each other and with tests that compute. Four black-box tests at a time suffice to
# keep the processors busy.
drivers() { tests -vet=off -timeout 25m ./sqlstore/sqlite ./sqlstore/postgres; }
binary() { ROWLOCK_BINARY=$made/rowlock $ROWLOCK_GOTEST -vet=off -timeout 30m -parallel 4 ./e2e ./e2e/attack ./e2e/robustness; }
blackbox() {
	say "the static binary"
	if ! go build -o "$made/rowlock" ./cmd/rowlock; then
		echo "  go build ./cmd/rowlock" >>"$made/failed.$lane"
		return
	fi
	say "drivers and black-box tests"
	tested drivers &
	started=$!
	tested binary
	wait $started
}

# run runs a lane in a shell of its own, and sums the time of its processes.
run() (
	lane=$1
	$lane
	times >"$made/times.$lane"
)

if has unit || has blackbox; then
	say "gotestsum"
	GOBIN=$made go install gotest.tools/gotestsum@v1.13.0
fi
beside=""
if has blackbox; then
	run blackbox &
	beside=$!
fi
! has lint || run lint
! has unit || run unit
if [ -n "$beside" ]; then
	say "the rest of drivers and black-box tests"
	wait "$beside"
fi

say "done"
for lane in $lanes; do
	awk -v lane="$lane" 'NR == 2 { split($0, t, /[ms ]+/); printf "%s: %d s of processor time\n", lane, t[1] * 60 + t[2] + t[3] * 60 + t[4] }' "$made/times.$lane"
done
bad=0
lenient=$(wc -l <"$ROWLOCK_LENIENCY")
if [ "$lenient" -gt 0 ]; then
	echo "Tests expected less of a slow machine $lenient times, of which $mostLenient are borne:"
	sed 's/^/  /' "$ROWLOCK_LENIENCY"
	[ "$lenient" -le "$mostLenient" ] || bad=1
fi
for lane in $lanes; do
	[ -e "$made/failed.$lane" ] || continue
	echo "failed in lane $lane:"
	cat "$made/failed.$lane"
	bad=1
done
exit $bad
