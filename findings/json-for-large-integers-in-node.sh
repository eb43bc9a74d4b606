#!/bin/sh
# json-bigint 1.0.0 and jsonparse 1.3.1 with JSONStream 1.3.5 (npm), compared with lossless-json 4.3.3, on Node 20.
#
# Seen: json-bigint takes each number of more than 15 characters for a large integer. With useNativeBigInt an ordinary double such as 0.30000000000000004
# is a SyntaxError, which fails the whole document; with storeAsString it becomes a text, and by default an object that "+ 1" appends a
# digit to. jsonparse, and so JSONStream, makes a text of an integer above 2^53, and rounds the same integer with a minus.
# Expected: libraries that are installed for large integers leave fractions alone; and one type for one field.
# Who is hurt: who reads objects with identities of 64 bits by them: the document that a metric of 17 digits is in cannot be read; and an object
# that went through JSONStream has a text where the schema has an integer, but only from 9007199254740993 on.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . json-bigint@1.0.0 jsonparse@1.3.1 JSONStream@1.3.5 lossless-json@4.3.3 >/dev/null
cat >main.mjs <<'EOF'
import JSONbig from 'json-bigint'
import JSONStream from 'JSONStream'
import * as lossless from 'lossless-json'

const stream = (text) => {
  let value
  const parser = JSONStream.parse()
  parser.on('data', (root) => { value = root })
  parser.end(text)
  return value
}
const parsers = {
  'json-bigint': [JSONbig.parse, JSONbig.stringify],
  'json-bigint, native': [JSONbig({ useNativeBigInt: true }).parse, JSONbig.stringify],
  'json-bigint, string': [JSONbig({ storeAsString: true }).parse, JSONbig.stringify],
  JSONStream: [stream, JSON.stringify],
  'lossless-json': [lossless.parse, lossless.stringify],
}
for (const number of ['0.1', '0.30000000000000004', '9007199254740993', '-9007199254740993']) {
  console.log(number)
  for (const [name, [parse, stringify]] of Object.entries(parsers)) {
    try {
      const { a } = parse(`{"a":${number}}`)
      console.log(`  ${name}: ${typeof a}, written ${stringify({ a })}`)
    } catch (e) {
      console.log(`  ${name}: ${e.name}`)
    }
  }
}
console.log(`0.30000000000000004 + 1 of json-bigint: ${JSONbig.parse('0.30000000000000004') + 1}`)
EOF
node main.mjs | tee out
cat >want <<'EOF'
0.1
  json-bigint: number, written {"a":0.1}
  json-bigint, native: number, written {"a":0.1}
  json-bigint, string: number, written {"a":0.1}
  JSONStream: number, written {"a":0.1}
  lossless-json: object, written {"a":0.1}
0.30000000000000004
  json-bigint: object, written {"a":0.30000000000000004}
  json-bigint, native: SyntaxError
  json-bigint, string: string, written {"a":"0.30000000000000004"}
  JSONStream: number, written {"a":0.30000000000000004}
  lossless-json: object, written {"a":0.30000000000000004}
9007199254740993
  json-bigint: object, written {"a":9007199254740993}
  json-bigint, native: bigint, written {"a":9007199254740993}
  json-bigint, string: string, written {"a":"9007199254740993"}
  JSONStream: string, written {"a":"9007199254740993"}
  lossless-json: object, written {"a":9007199254740993}
-9007199254740993
  json-bigint: object, written {"a":-9007199254740993}
  json-bigint, native: bigint, written {"a":-9007199254740993}
  json-bigint, string: string, written {"a":"-9007199254740993"}
  JSONStream: number, written {"a":-9007199254740992}
  lossless-json: object, written {"a":-9007199254740993}
0.30000000000000004 + 1 of json-bigint: 0.300000000000000041
EOF
diff want out
