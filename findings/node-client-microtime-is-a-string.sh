#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm).
#
# Seen: the declarations give a Lease's renewTime the type V1MicroTime, a subclass of Date,
# but an object that has been read holds a plain string there. creationTimestamp, declared
# as Date, is a Date.
# Expected: what the declarations say; the TypeScript compiler accepts
# lease.spec.renewTime.getTime(), and at run time it is a TypeError.
# Who is hurt: leader election and failure detectors in TypeScript. The comparison
# renewTime < new Date() compiles too, compares a string that is no number, and is false
# whatever the time: a lease that ran out long ago never counts as expired.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
cat >main.mjs <<'EOF'
import { ObjectSerializer } from '@kubernetes/client-node/dist/gen/models/ObjectSerializer.js'
const lease = ObjectSerializer.deserialize({
  metadata: { name: 'l', creationTimestamp: '2024-01-01T00:00:00Z' },
  spec: { renewTime: '2024-01-01T00:00:00.123456Z' },
}, 'V1Lease')
for (const [name, t] of [['creationTimestamp', lease.metadata.creationTimestamp], ['renewTime', lease.spec.renewTime]])
  console.log(`${name}: ${typeof t}, a Date: ${t instanceof Date}, before now: ${t < new Date()}, after now: ${t > new Date()}`)
EOF
{
	grep -o "'renewTime'?: V1MicroTime" node_modules/@kubernetes/client-node/dist/gen/models/V1LeaseSpec.d.ts
	grep -o 'class V1MicroTime extends Date' node_modules/@kubernetes/client-node/dist/types.d.ts
	node main.mjs
} | tee out
cat >want <<'EOF'
'renewTime'?: V1MicroTime
class V1MicroTime extends Date
creationTimestamp: object, a Date: true, before now: true, after now: false
renewTime: string, a Date: false, before now: false, after now: false
EOF
diff want out
