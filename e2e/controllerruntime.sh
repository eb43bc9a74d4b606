#!/bin/sh
# Runs e2e/controllerruntime with each supported release of controller-runtime, the oldest and the
# newest included, or with those of the arguments: the module selects the versions that the release
# requires, as a project does that requires both. One of the long tests: it compiles everything with
# two releases of Kubernetes' modules.
set -eu
cd "$(dirname "$0")/controllerruntime"
[ $# -gt 0 ] || set -- v0.24.1 v0.25.0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export GOWORK=off
for version in "$@"; do
    echo "controller-runtime $version"
    # Not the committed files, which have the versions for the oldest one.
    mod=$dir/$version.mod
    {
        sed -n '1,/^go /p' go.mod
        echo "require github.com/rowlock/rowlock v0.0.0-00010101000000-000000000000"
        echo "require sigs.k8s.io/controller-runtime $version"
        echo "replace github.com/rowlock/rowlock => $(cd ../.. && pwd)"
    } >"$mod"
    go mod tidy -modfile="$mod"
    go list -modfile="$mod" -m k8s.io/api k8s.io/apiserver github.com/google/cel-go
    go vet -modfile="$mod" ./...
    for release in 1.32 1.36; do
        ROWLOCK_RELEASE=$release go test -modfile="$mod" -count=1 -timeout 10m ./...
    done
done
