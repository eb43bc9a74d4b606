#!/bin/sh
# The short tests: those beside the code but for the drivers of PostgreSQL, which want a
# server, and of the built binary whether it starts, serves and ends. Nothing is
# installed, and what e2e/apart.txt names is left out where it has not changed. e2e/test.sh runs all.
set -eu
cd "$(dirname "$0")/.."
. e2e/flags.sh
apart=$(sh e2e/apart.sh)
for package in $(go list ./... | sed 's|^github.com/rowlock/rowlock|.|' | grep -v -E '^\./(e2e|e2e/attack|sqlstore/(postgres|sqlite)(/.*)?)$'); do
	echo "$apart" | grep -q -x -F -- "$package" || set -- "$@" "$package"
done
go test "$@"
go test -short -run 'TestConformance/(Apply|Store)' ./sqlstore/sqlite
go test -run 'TestImports|TestCommandLine|TestFirstStart|TestDrain' ./e2e
