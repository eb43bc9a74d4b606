#!/bin/sh
# python3-jsonpatch 1.32 of Debian 12, and of npm fast-json-patch 3.1.1, json8-patch 1.0.6, json-patch 0.7.0,
# rfc6902 5.4.0, jiff 0.7.3 and immutable-json-patch 6.0.3.
#
# Seen: the first four put the value of an "add" into the document itself, not a copy of it. A later operation of the same patch that adds to it changes the patch:
# applied to three objects, a patch that makes a list with one item makes one with three items, in all three. The objects share the list, so
# that a label set on one of them is set on the others. fast-json-patch does so with mutateDocument false as well. In json8-patch and json-patch "copy" shares too.
# Expected: a patch stays as it is, and each document has its own values, as with rfc6902 and jiff.
# Who is hurt: controllers and webhooks with a patch in a constant ("add /metadata/annotations {}", then one annotation, as an object without annotations
# needs): what one object gets, the next one has too, from one request to another, and the patch grows until the process is restarted.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-jsonpatch=1.32-2 python3-json-pointer=2.3-2 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
npm install --silent --no-save --prefix . fast-json-patch@3.1.1 json8-patch@1.0.6 json-patch@0.7.0 rfc6902@5.4.0 jiff@0.7.3 immutable-json-patch@6.0.3 >/dev/null
cat >main.py <<'EOF'
import json

import jsonpatch

patch = [{'op': 'add', 'path': '/args', 'value': []}, {'op': 'add', 'path': '/args/-', 'value': '-v'}]
objects = [jsonpatch.apply_patch({}, patch) for _ in range(3)]
print('python-jsonpatch:', json.dumps(objects[2]), 'patch', json.dumps(patch[0]['value']))
patch = [{'op': 'add', 'path': '/labels', 'value': {}}]
objects = [jsonpatch.apply_patch({}, patch) for _ in range(2)]
objects[0]['labels']['tenant'] = 'a'
print('  label of the first in the second:', json.dumps(objects[1]))
EOF
cat >main.mjs <<'EOF'
import fast from 'fast-json-patch'
import { immutableJSONPatch } from 'immutable-json-patch'
import jiff from 'jiff'
import json8 from 'json8-patch'
import jsonPatch from 'json-patch'
import { applyPatch } from 'rfc6902'

const libraries = {
  'fast-json-patch': (object, patch) => fast.applyPatch(object, patch).newDocument,
  'fast-json-patch, mutateDocument false': (object, patch) => fast.applyPatch(object, patch, true, false).newDocument,
  'json8-patch': (object, patch) => json8.apply(object, patch).doc,
  'json-patch': (object, patch) => jsonPatch.apply(object, patch),
  rfc6902: (object, patch) => (applyPatch(object, patch), object),
  jiff: (object, patch) => jiff.patch(patch, object),
  'immutable-json-patch': (object, patch) => immutableJSONPatch(object, patch),
}
for (const [name, apply] of Object.entries(libraries)) {
  const args = [{ op: 'add', path: '/args', value: [] }, { op: 'add', path: '/args/-', value: '-v' }]
  const third = [1, 2, 3].map(() => apply({}, args))[2]
  console.log(`${name}: ${JSON.stringify(third)} patch ${JSON.stringify(args[0].value)}`)
  const labels = [{ op: 'add', path: '/labels', value: {} }]
  const [first, second] = [1, 2].map(() => apply({}, labels))
  first.labels.tenant = 'a'
  console.log(`  label of the first in the second: ${JSON.stringify(second)}`)
  const copied = apply({ a: {} }, [{ op: 'copy', from: '/a', path: '/b' }, { op: 'add', path: '/b/x', value: 1 }])
  console.log(`  copied: ${JSON.stringify(copied)}`)
}
EOF
{ PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py; node main.mjs; } | tee out
cat >want <<'EOF'
python-jsonpatch: {"args": ["-v", "-v", "-v"]} patch ["-v", "-v", "-v"]
  label of the first in the second: {"labels": {"tenant": "a"}}
fast-json-patch: {"args":["-v","-v","-v"]} patch ["-v","-v","-v"]
  label of the first in the second: {"labels":{"tenant":"a"}}
  copied: {"a":{},"b":{"x":1}}
fast-json-patch, mutateDocument false: {"args":["-v","-v","-v"]} patch ["-v","-v","-v"]
  label of the first in the second: {"labels":{"tenant":"a"}}
  copied: {"a":{},"b":{"x":1}}
json8-patch: {"args":["-v","-v","-v"]} patch ["-v","-v","-v"]
  label of the first in the second: {"labels":{"tenant":"a"}}
  copied: {"a":{"x":1},"b":{"x":1}}
json-patch: {"args":["-v","-v","-v"]} patch ["-v","-v","-v"]
  label of the first in the second: {"labels":{"tenant":"a"}}
  copied: {"a":{"x":1},"b":{"x":1}}
rfc6902: {"args":["-v"]} patch []
  label of the first in the second: {"labels":{}}
  copied: {"a":{},"b":{"x":1}}
jiff: {"args":["-v"]} patch []
  label of the first in the second: {"labels":{}}
  copied: {"a":{},"b":{"x":1}}
immutable-json-patch: {"args":["-v"]} patch []
  label of the first in the second: {"labels":{"tenant":"a"}}
  copied: {"a":{},"b":{"x":1}}
EOF
diff want out
