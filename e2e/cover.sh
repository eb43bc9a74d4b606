#!/bin/sh
# Measures how much of each package of kinds its own tests reach, and fails where that
# is less than server/kinds/coverage.txt says, or where the file leaves a package out.
# Arguments are more for go test: flags, then packages that are tested beside them.
set -eu
cd "$(dirname "$0")/.."
export CGO_ENABLED=0 GOFLAGS=-trimpath

out=$(mktemp)
trap 'rm -f "$out"' EXIT
go test -cover "$@" ./server/kinds/... >"$out" 2>&1 || {
	cat "$out"
	exit 1
}
cat "$out"
awk '
	NR == FNR { if ($0 !~ /^#/ && NF == 2) floor[$1] = $2; next }
	match($0, /github\.com\/rowlock\/rowlock\/[^ \t]+/) {
		if (index($0, "rowlock/server/kinds") == 0) next
		package = substr($0, RSTART + 27, RLENGTH - 27)
		if (!match($0, /coverage: [0-9.]+%/)) next
		got = substr($0, RSTART + 10, RLENGTH - 11)
		seen[package] = 1
		if (!(package in floor)) { print package ": server/kinds/coverage.txt does not have it"; bad = 1 }
		else if (got + 0 < floor[package] + 0) { print package ": " got "% of statements are reached, and were " floor[package] "%"; bad = 1 }
	}
	END {
		for (package in floor) if (!(package in seen)) { print package ": server/kinds/coverage.txt names it, and nothing was measured"; bad = 1 }
		exit bad
	}
' server/kinds/coverage.txt "$out"
