#!/bin/sh
# Fuzzes every target, or those of some packages, each for some seconds:
#
#	sh e2e/fuzz.sh [SECONDS [PACKAGE...]]
#
# It fuzzes as many packages at once as there are processors. Interesting inputs go to Go's fuzzing
# cache, from which later runs start; a failing input is written to the package's testdata/fuzz,
# where it is a seed from then on.
set -eu
cd "$(dirname "$0")/.."

# Only this module's packages are instrumented: coverage of libraries is not worth compiling all of
# them again.
ours='-gcflags=github.com/rowlock/rowlock/...=-d=libfuzzer'
export CGO_ENABLED=0 GOFLAGS=-trimpath

# One package: its test binary, then its targets one after another.
if [ "${1-}" = --package ]; then
	seconds=$2 package=$3 binary=$(mktemp)
	trap 'rm -f "$binary"' EXIT
	go test -c -vet=off -p 1 "$ours" -o "$binary" "$package"
	cache=$(go env GOCACHE)/fuzz/$(go list "$package")
	cd "$(go list -f '{{.Dir}}' "$package")"
	for target in $("$binary" -test.list '^Fuzz'); do
		"$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "${seconds}s" -test.fuzzminimizetime 5s \
			-test.fuzzcachedir "$cache" -test.parallel 1 >"$binary.log" 2>&1 && failed="" || failed=yes
		# If a worker is still busy when the time is over, Go reports that the context ended: no input
		# has failed then, or a file would name it.
		if [ -n "$failed" ] && grep -q '^ *context deadline exceeded$' "$binary.log" && ! grep -q -E 'Failing input written|panic:|seed corpus entry' "$binary.log"; then
			failed=""
		fi
		if [ -n "$failed" ]; then
			echo "--- FAIL: $target of $package"
			cat "$binary.log"
			rm -f "$binary.log"
			exit 1
		fi
		echo "ok  	$package $target $(sed -n 's/.*execs: \([0-9]*\).*/\1 inputs/p' "$binary.log" | tail -n 1)"
		rm -f "$binary.log"
	done
	exit 0
fi

seconds=${1:-10}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,')
# Shared packages are compiled first, once. Programs cannot be linked in this way.
go build "$ours" $(go list -f '{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}' ./...)
printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" sh e2e/fuzz.sh --package "$seconds"
