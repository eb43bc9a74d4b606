#!/bin/sh
# Clients of releases that the other tests do not use, each against the built binary (ROWLOCK_BINARY): kubectl, and
# envtest of controller-runtime with its client-go. CLIENT:RELEASE:VERSION is a client, the release that the server
# emulates, and the version of the client's module; arguments replace the list below. One of the long tests: each
# client compiles Kubernetes' modules of another release.
set -eu
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- kubectl:1.32:v0.31.3 kubectl:1.32:v0.33.13 kubectl:1.36:v0.36.6 kubectl:1.36:v0.37.2 \
    envtest:1.32:v0.19.4 envtest:1.32:v0.21.0 envtest:1.36:v0.24.1 envtest:1.36:v0.25.2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export GOWORK=off
# select MODULE REQUIRED... writes a go.mod in $mod with other versions than the committed ones.
select_modules() {
    mod=$dir/$1.mod
    sed -n '1,/^go /p' "$1/go.mod" >"$mod"
    where=$1
    shift
    for required; do echo "require $required" >>"$mod"; done
    (cd "$where" && go mod tidy -modfile="$mod")
}
for client; do
    version=${client##*:} what=${client%%:*} release=${client#*:}
    release=${release%:*}
    echo "$what $version against $release"
    case $what in
    kubectl)
        select_modules kubectl "k8s.io/kubectl $version" "k8s.io/component-base $version"
        minor=${version#v0.}
        (cd kubectl && CGO_ENABLED=0 go build -modfile="$mod" -ldflags "-X k8s.io/component-base/version.gitVersion=v1.$minor -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor%.*}" -o "$dir/kubectl" .)
        ROWLOCK_KUBECTL=$dir/kubectl ROWLOCK_TEST_FLAGS=--emulated-version=$release go test -count=1 -timeout 30m -run '^TestKubectl' .
        ;;
    envtest)
        select_modules envtest "sigs.k8s.io/controller-runtime $version"
        (cd envtest && go vet -modfile="$mod" ./... && ROWLOCK_RELEASE=$release go test -modfile="$mod" -count=1 -timeout 10m ./...)
        ;;
    esac
done
