#!/bin/sh
# just-diff 6.0.2 (npm), its JSON Patches by jsonPatchPathConverter, applied with fast-json-patch 3.1.1.
#
# Seen: a key with "/" or "~" is written into the path as it is: the label app.kubernetes.io/name has the path /labels/app.kubernetes.io/name, which is the
# member "name" of a member "app.kubernetes.io".
# Expected: /labels/app.kubernetes.io~1name, as fast-json-patch's own compare has it; the converter is there for nothing but this format.
# Who is hurt: dashboards and operators in Node that send the difference of two objects: each patch of a label or annotation with a prefix is refused,
# those without a prefix work.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . just-diff@6.0.2 fast-json-patch@3.1.1 >/dev/null
cat >main.mjs <<'EOF'
import { diff, jsonPatchPathConverter } from 'just-diff'
import jsonpatch from 'fast-json-patch'

for (const [before, after] of [
  [{ labels: { app: 'a' } }, { labels: { app: 'b' } }],
  [{ labels: { 'app.kubernetes.io/name': 'a' } }, { labels: { 'app.kubernetes.io/name': 'b' } }],
  [{ labels: {} }, { labels: { 'app.kubernetes.io/name': 'b' } }],
]) {
  const patch = diff(before, after, jsonPatchPathConverter)
  let result
  try {
    result = JSON.stringify(jsonpatch.applyPatch(before, patch, true).newDocument)
  } catch (e) {
    result = e.name
  }
  console.log(`${JSON.stringify(patch)}: ${result}`)
}
console.log('fast-json-patch:', JSON.stringify(jsonpatch.compare({ labels: { 'a/b': 1 } }, { labels: { 'a/b': 2 } })))
EOF
node main.mjs | tee out
cat >want <<'EOF'
[{"op":"replace","path":"/labels/app","value":"b"}]: {"labels":{"app":"b"}}
[{"op":"replace","path":"/labels/app.kubernetes.io/name","value":"b"}]: OPERATION_PATH_UNRESOLVABLE
[{"op":"add","path":"/labels/app.kubernetes.io/name","value":"b"}]: OPERATION_PATH_CANNOT_ADD
fast-json-patch: [{"op":"replace","path":"/labels/a~1b","value":2}]
EOF
diff want out
