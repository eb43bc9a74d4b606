#!/bin/sh
# generate-json-patch 1.2.9 and json-patch-gen 1.0.2 (npm), applied with fast-json-patch 3.1.1.
#
# Seen: a member that is set to undefined, as code in JavaScript takes a label or a field away and as JSON.stringify leaves it out, becomes a "replace" without
# a value; one that was undefined becomes a "replace" of a path that does not exist. Both patches are refused. json-patch-gen finds no difference between two
# Dates, which the times of the official client are, and throws a TypeError where null becomes an object or the reverse.
# Expected: the patch that leads from the JSON of the first object to the JSON of the second.
# Who is hurt: operators in Node: `labels.canary = undefined` makes a patch that the server refuses, `delete labels.canary` a right one; a new time alone is
# never sent; and a field that a server shows as null fails the comparison.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . generate-json-patch@1.2.9 json-patch-gen@1.0.2 fast-json-patch@3.1.1 >/dev/null
cat >main.mjs <<'END'
import jsonpatch from 'fast-json-patch'
import { generateJSONPatch } from 'generate-json-patch'
import compare from 'json-patch-gen'

const cases = {
  'a label set to undefined': [{ labels: { app: 'a', canary: 'yes' } }, { labels: { app: 'a', canary: undefined } }],
  'a label that was undefined': [{ labels: { app: undefined } }, { labels: { app: 'a' } }],
  'a label deleted': [{ labels: { app: 'a', canary: 'yes' } }, { labels: { app: 'a' } }],
  'another Date': [{ renewTime: new Date(0) }, { renewTime: new Date(60000) }],
  'null to an object': [{ affinity: null }, { affinity: { nodeAffinity: {} } }],
}
for (const [name, [before, after]] of Object.entries(cases)) {
  console.log(name)
  for (const [library, diff] of [['generate-json-patch', generateJSONPatch], ['json-patch-gen', compare]]) {
    try {
      const patch = JSON.stringify(diff(before, after))
      let result
      try {
        const { newDocument } = jsonpatch.applyPatch(JSON.parse(JSON.stringify(before)), JSON.parse(patch), true)
        result = JSON.stringify(newDocument) === JSON.stringify(after) ? 'right' : `wrong, ${JSON.stringify(newDocument)}`
      } catch (e) {
        result = `refused, ${e.name}`
      }
      console.log(`  ${library}: ${patch}: ${result}`)
    } catch (e) {
      console.log(`  ${library}: ${e.name}: ${e.message}`)
    }
  }
}
END
node main.mjs | tee out
cat >want <<'END'
a label set to undefined
  generate-json-patch: [{"op":"replace","path":"/labels/canary"}]: refused, OPERATION_VALUE_REQUIRED
  json-patch-gen: [{"op":"replace","path":"/labels/canary"}]: refused, OPERATION_VALUE_REQUIRED
a label that was undefined
  generate-json-patch: [{"op":"replace","path":"/labels/app","value":"a"}]: refused, OPERATION_PATH_UNRESOLVABLE
  json-patch-gen: [{"op":"replace","path":"/labels/app","value":"a"}]: refused, OPERATION_PATH_UNRESOLVABLE
a label deleted
  generate-json-patch: [{"op":"remove","path":"/labels/canary"}]: right
  json-patch-gen: [{"op":"remove","path":"/labels/canary"}]: right
another Date
  generate-json-patch: [{"op":"replace","path":"/renewTime","value":"1970-01-01T00:01:00.000Z"}]: right
  json-patch-gen: []: wrong, {"renewTime":"1970-01-01T00:00:00.000Z"}
null to an object
  generate-json-patch: [{"op":"replace","path":"/affinity","value":{"nodeAffinity":{}}}]: right
  json-patch-gen: TypeError: Cannot use 'in' operator to search for 'nodeAffinity' in null
END
diff want out
