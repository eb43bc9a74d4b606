#!/bin/sh
# json-schema-to-zod 2.8.1 with zod 4.1.13 (npm), beside ajv 8.17.1.
#
# Seen: `oneOf: [{required: [a]}, {required: [b]}]` refuses each object: a schema without a type becomes z.any(), so that both sides match. `anyOf` of such
# accepts each object, `not` and `minProperties` of an object are left out, and a field that the schema does not name is taken out of the result.
# Expected: what the schema says, as ajv has it, or an error for what has no translation.
# Who is hurt: forms and services that check custom resources by their definitions, which write "exactly one of" so (the Gateway API, cert-manager): one kind
# can never be sent, for others the check is empty, and what is read, changed and sent back has lost the fields of a newer server.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . json-schema-to-zod@2.8.1 zod@4.1.13 ajv@8.17.1 typescript@5.9.3 >/dev/null
cat >main.mjs <<'END'
import { Ajv } from 'ajv'
import { jsonSchemaToZod } from 'json-schema-to-zod'
import ts from 'typescript'
import { z } from 'zod'

const text = { type: 'string' }
const properties = { secretName: text, inline: text }
const schemas = {
  'oneOf two required': [{ type: 'object', properties, oneOf: [{ required: ['secretName'] }, { required: ['inline'] }] }, { inline: 'x' }],
  'not required': [{ type: 'object', properties, not: { required: ['secretName'] } }, { inline: 'x' }],
  'anyOf two required': [{ type: 'object', properties, anyOf: [{ required: ['secretName'] }, { required: ['inline'] }] }, {}],
  'minProperties 1': [{ type: 'object', properties, minProperties: 1 }, {}],
  'a field that is not named': [{ type: 'object', properties }, { inline: 'x', newer: 1 }],
}
for (const [name, [schema, value]] of Object.entries(schemas)) {
  const code = ts.transpile(`(${jsonSchemaToZod(schema, { module: 'none' })})`, { target: ts.ScriptTarget.ES2022 }).replace(/;\s*$/, '')
  const parsed = new Function('z', `return ${code}`)(z).safeParse(value)
  const valid = new Ajv({ strict: false }).validate(schema, value)
  console.log(`${name}: ${JSON.stringify(value)} zod: ${parsed.success ? JSON.stringify(parsed.data) : 'refused'}, ajv: ${valid ? 'valid' : 'refused'}`)
}
END
node main.mjs | tee out
cat >want <<'END'
oneOf two required: {"inline":"x"} zod: refused, ajv: valid
not required: {"inline":"x"} zod: {"inline":"x"}, ajv: valid
anyOf two required: {} zod: {}, ajv: refused
minProperties 1: {} zod: {}, ajv: refused
a field that is not named: {"inline":"x","newer":1} zod: {"inline":"x"}, ajv: valid
END
diff want out
