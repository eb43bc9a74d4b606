// Command etcd takes the place of an etcd that test environments and scripts start for a kube-apiserver: it
// has etcd's command line, answers its health checks, and owns the folder of the database that rowlock's API
// servers open. It does not implement etcd's protocol. `rowlock etcd` is the same.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rowlock/rowlock/sqlstore/etcdstub"
)

// version is set by the linker for releases.
var version = "v0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := etcdstub.Main(ctx, os.Args[1:], os.Getenv, version, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
