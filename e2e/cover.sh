#!/bin/sh
# Measures the coverage of each package of kinds by its own tests. Fails if it is less than
# server/kinds/coverage.txt requires, or if the file lacks a package. Arguments are passed to
# go test: flags, then further packages to test.
set -eu
cd "$(dirname "$0")/.."
. e2e/flags.sh

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$dir/reached"

# One build instruments all kinds for all tests: if each test instrumented its own package alone,
# each would compile the server again. So each test writes a profile of all kinds, from which the
# coverage of its own package is read. Tests run in the folder of their package.
# TestListsAreLinear of server/kinds/builtin reads the counters of kinds, and of other packages that
# walk their lists.
counted=$(sed -n 's/^const counted = "\(.*\)"$/\1/p' server/kinds/builtin/lists_test.go)
cat >"$dir/run" <<'END'
#!/bin/sh
binary=$1
shift
exec "$binary" "$@" "-test.coverprofile=$REACHED/$(echo "${PWD#"$ROOT"/}" | tr / ,)"
END
chmod +x "$dir/run"
ROOT=$(pwd -P) REACHED=$dir/reached
export ROOT REACHED
{
	${ROWLOCK_GOTEST:-go test} -covermode=count -coverpkg="$counted" -exec "$dir/run" "$@" ./server/kinds/... 2>&1 || touch "$dir/failed"
} | sed -u 's/[ \t]*(\{0,1\}coverage: .*//'
[ ! -e "$dir/failed" ] || exit 1
go list ./server/kinds/... | sed 's|^github.com/rowlock/rowlock/||' >"$dir/packages"
awk -v packages="$dir/packages" -v floors=server/kinds/coverage.txt '
	BEGIN {
		while ((getline line <floors) > 0) if (split(line, part, " ") == 2 && line !~ /^#/) floor[part[1]] = part[2]
		while ((getline line <packages) > 0) known[line] = 1
	}
	FNR == 1 {
		package = FILENAME
		sub(/.*\//, "", package)
		gsub(/,/, "/", package)
		own = "github.com/rowlock/rowlock/" package "/"
		next
	}
	index($1, own) == 1 && substr($1, length(own) + 1) !~ /\// {
		all[package] += $2
		if ($3 > 0) reached[package] += $2
	}
	END {
		for (package in known) {
			if (all[package]) {
				got = int(1000 * reached[package] / all[package] + 0.5) / 10
				print package ": " got "% of statements"
				if (package in floor && got < floor[package] + 0) { print package ": " got "% of statements are reached, and were " floor[package] "%"; bad = 1 }
			} else if (package in floor) { print package ": server/kinds/coverage.txt names it, and nothing was measured"; bad = 1 }
			if (!(package in floor)) { print package ": server/kinds/coverage.txt does not have it"; bad = 1 }
		}
		for (package in floor) if (!(package in known)) { print package ": server/kinds/coverage.txt names it, and it is not there"; bad = 1 }
		exit bad
	}
' "$dir"/reached/*
