#!/bin/sh
# @kubernetes/client-node 1.4.0 (npm).
#
# Seen: typed objects are rebuilt from a fixed table of fields in both directions. A field
# that the table does not know is dropped when an object is read and again when it is
# written, without an error, although the object is a plain JavaScript one and the caller
# never touched that part.
# Expected: unknown fields pass through, as they do for objects of custom kinds in the same
# package, or the program is told.
# Who is hurt: read-modify-replace against a server of a newer release deletes the fields
# that release added (here a new field of a Lease and of a container), in every
# object it touches; and manifests with such fields are created without them.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.mjs <<'EOF'
import { ObjectSerializer } from '@kubernetes/client-node/dist/gen/models/ObjectSerializer.js'
const lease = JSON.parse('{"metadata":{"name":"l"},"spec":{"holderIdentity":"a","fieldOfTomorrow":"kept?"}}')
const read = ObjectSerializer.deserialize(lease, 'V1Lease')
read.spec.holderIdentity = 'b'
console.log('read, changed, written:', JSON.stringify(ObjectSerializer.serialize(read, 'V1Lease')))
const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', fieldOfTomorrow: 1 }] } }
console.log('written:', JSON.stringify(ObjectSerializer.serialize(pod, 'V1Pod')))
EOF
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 >/dev/null
node main.mjs | tee out
cat >want <<'EOF'
read, changed, written: {"metadata":{"name":"l"},"spec":{"holderIdentity":"b"}}
written: {"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}
EOF
diff want out
