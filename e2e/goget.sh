#!/bin/sh
# An empty module requires this one as other projects do: go get, a program with an embedded control
# plane, a test with a server. One of the long tests: it compiles everything under another name.
set -eu
cd "$(dirname "$0")/.."
version=v0.99.0
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" || :; rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
go run ./e2e/modproxy "$dir/proxy" $version
cp server/rowlocktest/example_test.go "$dir/greeter_test.go"
cp server/embed/example_test.go "$dir/embed_test.go"
mkdir -p "$dir/importer/program"
GOPROXY="file://$dir/proxy,$(go env GOPROXY)"
export GOPROXY GONOSUMDB=github.com/rowlock/rowlock GOFLAGS=-trimpath CGO_ENABLED=0 GOWORK=off
export GOMODCACHE="$dir/modules"
cd "$dir/importer"
go mod init importer.example
go get github.com/rowlock/rowlock@$version
# The examples of the documentation, as tests of another module.
sed 's/^package .*/package importer_test/' "$dir/greeter_test.go" >greeter_test.go
sed 's/^package .*/package importer_test/' "$dir/embed_test.go" >embed_test.go
cat >program/main.go <<'END'
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rowlock/rowlock/server/embed"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	cp, err := embed.New(ctx, embed.Options{Store: sqlite.At(os.Args[1])})
	if err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- cp.Run(ctx) }()
	fmt.Println("ready:", cp.Ready(ctx))
	stop()
	fmt.Println("ended:", <-done)
}
END
go mod tidy
go vet ./...
go test ./...
go run ./program "$dir/db"
# A longer list must change this number.
list=$(go list -deps -f '{{with .Module}}{{.Path}}{{end}}' ./program)
modules=$(echo "$list" | sort -u | wc -l)
echo "modules: $modules"
test "$modules" -le 83
