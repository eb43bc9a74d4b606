#!/bin/sh
# openapi-typescript 7.13.0 (npm).
#
# Seen: a property with a default is required in the generated type, whether or not it is in `required`. The OpenAPI v3 document
# of an API server has a default for each embedded object that is no pointer in Go ({}), and for fields that it defaults:
# metadata, spec, status, protocol. So `{ containerPort: 80 }` is no ContainerPort, and a Pod needs a status.
# Expected: what a client may leave out is optional; a default is what the server puts there.
# Who is hurt: TypeScript clients generated from /openapi/v3: to please the compiler they send `protocol`, `status: {}` and
# other fields, and server-side apply makes them the owners of those.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . openapi-typescript@7.13.0 typescript@5.9.3 >/dev/null
cat >api.json <<'EOF'
{
  "openapi": "3.0.0", "info": { "title": "Kubernetes", "version": "v1.36.2" }, "paths": {},
  "components": { "schemas": {
    "Pod": { "type": "object", "properties": {
      "kind": { "type": "string" },
      "metadata": { "default": {}, "allOf": [{ "$ref": "#/components/schemas/ObjectMeta" }] },
      "spec": { "default": {}, "allOf": [{ "$ref": "#/components/schemas/PodSpec" }] },
      "status": { "default": {}, "allOf": [{ "$ref": "#/components/schemas/PodStatus" }] } } },
    "ObjectMeta": { "type": "object", "properties": { "name": { "type": "string" } } },
    "PodSpec": { "type": "object", "required": ["ports"], "properties": {
      "ports": { "type": "array", "items": { "default": {}, "allOf": [{ "$ref": "#/components/schemas/ContainerPort" }] } } } },
    "PodStatus": { "type": "object", "properties": { "phase": { "type": "string" } } },
    "ContainerPort": { "type": "object", "required": ["containerPort"], "properties": {
      "containerPort": { "type": "integer", "format": "int32", "default": 0 },
      "name": { "type": "string" },
      "protocol": { "type": "string", "default": "TCP" } } } } }
}
EOF
node_modules/.bin/openapi-typescript api.json -o api.ts >/dev/null 2>&1
cat >client.ts <<'EOF'
import type { components } from './api'

export const pod: components['schemas']['Pod'] = { kind: 'Pod', metadata: { name: 'a' }, spec: { ports: [{ containerPort: 80 }] } }
EOF
{
  grep -E '(metadata|spec|status|name|protocol)\??:' api.ts | sed 's/^ *//'
  node_modules/.bin/tsc --noEmit --strict client.ts | sed 's/([0-9,]*)//'
} | tee out
cat >want <<'EOF'
metadata: components["schemas"]["ObjectMeta"];
spec: components["schemas"]["PodSpec"];
status: components["schemas"]["PodStatus"];
name?: string;
name?: string;
protocol: string;
client.ts: error TS2741: Property 'protocol' is missing in type '{ containerPort: number; }' but required in type '{ containerPort: number; name?: string | undefined; protocol: string; }'.
EOF
diff want out
