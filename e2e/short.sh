#!/bin/sh
# The short tests: the unit tests, except those of the PostgreSQL drivers, which need a server, and
# one start of the built binary. It installs nothing, and skips packages in e2e/apart.txt that have not
# changed. e2e/test.sh runs all tests.
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
