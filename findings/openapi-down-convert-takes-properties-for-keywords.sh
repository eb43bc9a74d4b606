#!/bin/sh
# @apiture/openapi-down-convert 0.14.2 (npm): OpenAPI 3.1 to 3.0, which the schemas of Kubernetes' definitions are written in; ajv 8.17.1 checks the result.
#
# Seen: a property that is named like a keyword is taken for it: the property "const" disappears, and a property "enum" has a list in place of a schema. Members of
# default values and of enum's values are rewritten in the same way, so that a default is another object. patternProperties are dropped, and
# `type: [string, integer]`, which 3.0 does not have, stays, both without an error.
# Expected: only schemas changed; and what 3.0 cannot say refused, as the tool does for some other keywords.
# Who is hurt: definitions that are made from a JSON Schema by it: the server refuses the schema for a property that the author has never written, a default is not
# the one of the original, and free keys of a pattern are pruned from each object.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @apiture/openapi-down-convert@0.14.2 ajv@8.17.1 >/dev/null
cat >main.mjs <<'END'
import { Converter } from '@apiture/openapi-down-convert'
import { Ajv } from 'ajv'

const schemas = {
  'a property "const"': { type: 'object', properties: { const: { type: 'string' }, name: { type: 'string' } } },
  'a default': { type: 'object', default: { const: 'x', examples: ['a', 'b'] } },
  'an enum of objects': { enum: [{ const: 1 }, { const: 2 }] },
  patternProperties: { type: 'object', patternProperties: { '^x-': { type: 'string' } } },
  'two types': { type: ['string', 'integer'] },
}
for (const [name, schema] of Object.entries(schemas)) {
  const document = { openapi: '3.1.0', info: { title: 't', version: '1' }, paths: {}, components: { schemas: { Spec: structuredClone(schema) } } }
  const converted = new Converter(document).convert().components.schemas.Spec
  let valid = 'a schema'
  try {
    new Ajv({ strict: false }).compile(converted)
  } catch {
    valid = 'no schema'
  }
  console.log(`${name}: ${JSON.stringify(schema)}\n  ${JSON.stringify(converted)}: ${valid}`)
}
END
node main.mjs | tee out
cat >want <<'END'
a property "const": {"type":"object","properties":{"const":{"type":"string"},"name":{"type":"string"}}}
  {"type":"object","properties":{"name":{"type":"string"},"enum":[{"type":"string"}]}}: no schema
a default: {"type":"object","default":{"const":"x","examples":["a","b"]}}
  {"type":"object","default":{"example":"a","enum":["x"]}}: a schema
an enum of objects: {"enum":[{"const":1},{"const":2}]}
  {"enum":[{"enum":[1]},{"enum":[2]}]}: a schema
patternProperties: {"type":"object","patternProperties":{"^x-":{"type":"string"}}}
  {"type":"object"}: a schema
two types: {"type":["string","integer"]}
  {"type":["string","integer"]}: a schema
END
diff want out
