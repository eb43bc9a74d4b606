#!/bin/sh
# github.com/zegl/kube-score v1.20.0 (static checks of manifests).
#
# Seen, 1: the readiness probe of any container counts for all: an application without one passes if its sidecar has one.
# Seen, 2: two HTTP probes on ports with names are "the same readiness and liveness probe" if their paths are, because each name counts as port 0: /healthz on
# "http" and on "admin" is critical, with numbers it is not.
# Seen, 3: a Service without a selector, as it stands for a database elsewhere, targets each Pod of the namespace, and a worker without ports must have probes.
# Expected: the check that its text has ("Container is missing a readinessProbe"), ports compared by name, and no Pod for a Service without a selector.
# Who is hurt: pipelines with kube-score as a gate: a mesh or a log sidecar switches the check off for the application, and right manifests are refused for a
# reason that is not in them.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
go mod init finding 2>/dev/null
go get github.com/zegl/kube-score/cmd/kube-score@v1.20.0 2>/dev/null
go build -mod=mod -o kube-score github.com/zegl/kube-score/cmd/kube-score
deployment() { # NAME CONTAINERS
  printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec:\n  selector: {matchLabels: {app: %s}}\n' "$1" "$1"
  printf '  template:\n    metadata: {labels: {app: %s}}\n    spec:\n      containers: [%s]\n---\n' "$1" "$2"
}
service() { # SELECTOR
  printf 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  ports: [{port: 80}]\n%s---\n' "$1"
}
probe() { # PATH PORT
  printf '{httpGet: {path: %s, port: %s}}' "$1" "$2"
}
score() { # NAME CHECKS: whether one of them is critical
  if ./kube-score score --output-format ci - | grep 'apps/v1' | grep 'CRITICAL' | grep -q -- "$2"; then echo "$1: critical"; else echo "$1: passes"; fi
}
selects=$(printf '  selector: {app: web}\nx'); selects=${selects%x}
{
  { service "$selects"; deployment web '{name: web}'; } | score 'no probe' readinessProbe
  { service "$selects"; deployment web "{name: web}, {name: sidecar, readinessProbe: $(probe /ready 1), livenessProbe: $(probe /live 1)}"; } |
    score 'no probe, and a sidecar with one' readinessProbe
  { service "$selects"; deployment web "{name: web, readinessProbe: $(probe /healthz 80), livenessProbe: $(probe /healthz 81)}"; } | score 'the ports 80 and 81' 'same readiness'
  { service "$selects"; deployment web "{name: web, readinessProbe: $(probe /healthz http), livenessProbe: $(probe /healthz admin)}"; } |
    score 'the ports http and admin' 'same readiness'
  deployment worker '{name: worker}' | score 'a worker without a Service' readinessProbe
  { service ''; deployment worker '{name: worker}'; } | score 'a worker beside a Service without a selector' readinessProbe
} | tee out
cat >want <<'END'
no probe: critical
no probe, and a sidecar with one: passes
the ports 80 and 81: passes
the ports http and admin: critical
a worker without a Service: passes
a worker beside a Service without a selector: critical
END
diff want out
