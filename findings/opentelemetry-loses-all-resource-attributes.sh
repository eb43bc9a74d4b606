#!/bin/sh
# @opentelemetry/resources 2.12.1 (npm) and go.opentelemetry.io/otel/sdk v1.47.0, which read OTEL_RESOURCE_ATTRIBUTES.
#
# Seen: in Node one attribute whose value has "=" or "%" in it, or more than 255 characters, makes all of them disappear, the name of the service and the Pod too, and
# nothing is logged unless a diagnostic logger was set. Go takes each attribute for itself, and the value as it is.
# Expected: one reading of one variable; W3C's format for baggage, which it has, allows "=" in a value.
# Who is hurt: Pods that get the variable from their template: an argument, a query string or a long annotation in it, and the traces of this service are
# those of "unknown_service:node", in this language and not in others.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @opentelemetry/resources@2.12.1 @opentelemetry/api@1.9.0 >/dev/null
cat >main.mjs <<'EOF'
import { defaultResource, detectResources, envDetector } from '@opentelemetry/resources'

const { attributes } = defaultResource().merge(detectResources({ detectors: [envDetector] }))
const { 'service.name': service, 'k8s.pod.name': pod, extra } = attributes
console.log(`  Node: service ${service}, pod ${pod}, extra ${String(extra).slice(0, 12)}`)
EOF
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
)

func main() {
	found, err := resource.New(context.Background(), resource.WithFromEnv())
	if err != nil {
		panic(err)
	}
	get := func(key attribute.Key) string {
		value, _ := found.Set().Value(key)
		return value.AsString()
	}
	fmt.Printf("  Go: service %s, pod %s, extra %.12s\n", get("service.name"), get("k8s.pod.name"), get("extra"))
}
EOF
go mod init finding 2>/dev/null
go get go.opentelemetry.io/otel/sdk@v1.47.0 2>/dev/null
go build -mod=mod -o finding .
long=$(printf '%0256d' 0)
for extra in plain --level=debug 100% "$long"; do
  printf 'extra=%.12s\n' "$extra"
  for command in ./finding 'node main.mjs'; do OTEL_RESOURCE_ATTRIBUTES="service.name=web,k8s.pod.name=web-0,extra=$extra" $command 2>/dev/null; done
done | tee out
cat >want <<'EOF'
extra=plain
  Go: service web, pod web-0, extra plain
  Node: service web, pod web-0, extra plain
extra=--level=debu
  Go: service web, pod web-0, extra --level=debu
  Node: service unknown_service:node, pod undefined, extra undefined
extra=100%
  Go: service web, pod web-0, extra 100%
  Node: service unknown_service:node, pod undefined, extra undefined
extra=000000000000
  Go: service web, pod web-0, extra 000000000000
  Node: service unknown_service:node, pod undefined, extra undefined
EOF
diff want out
