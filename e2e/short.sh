#!/bin/sh
# The short tests: those beside the code but for the drivers of PostgreSQL, which want a
# server, and of the built binary whether it starts, serves and ends. Nothing is
# installed. Time is dearer here than certainty: e2e/test.sh runs all.
set -eu
cd "$(dirname "$0")/.."
. e2e/flags.sh
go test $(go list ./... | grep -v -E '/e2e$|/sqlstore/(postgres|sqlite)(/|$)')
go test -short -run 'TestConformance/(Apply|Store)' ./sqlstore/sqlite
go test -run 'TestImports|TestCommandLine|TestFirstStart|TestDrain' ./e2e
