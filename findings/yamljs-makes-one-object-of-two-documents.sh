#!/bin/sh
# yamljs 0.3.0 (npm), beside js-yaml 4.1.1.
#
# Seen: `---` between two documents is skipped, and both are read as one mapping: a file with a Service and a ConfigMap is one object, with the kind and the
# name of the first, the data of the second, and no error. A list in a list (`- - a`) is a text. A plain 08 is 0, 1,5 is 15, and a text that goes on in the
# next line keeps the newline.
# Expected: an error for more than one document, as other libraries' `load` has it, or the first of them; and YAML's lists and texts.
# Who is hurt: scripts that read manifests or Helm's output by it: of a file only the first object is applied, with fields of the others in it, which the server
# drops in silence for a built-in kind.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . yamljs@0.3.0 js-yaml@4.1.1 >/dev/null
cat >main.mjs <<'END'
import yaml from 'js-yaml'
import yamljs from 'yamljs'

const texts = {
  'two documents': `kind: Service
metadata: {name: web}
spec:
  ports: [{port: 80}]
---
kind: ConfigMap
metadata: {name: settings}
data: {mode: fast}
`,
  'a list in a list': 'matrix:\n- - a\n  - b\n',
  'a plain 08': 'hour: 08\n',
  'a plain 1,5': 'weights: 1,5\n',
  'a text of two lines': 'text: one\n  two\n',
}
for (const [name, text] of Object.entries(texts)) {
  console.log(`${name}: yamljs`, JSON.stringify(yamljs.parse(text)))
  try {
    console.log(`${name}: js-yaml`, JSON.stringify(yaml.load(text)))
  } catch (e) {
    console.log(`${name}: js-yaml error:`, e.reason)
  }
}
END
node main.mjs | tee out
cat >want <<'END'
two documents: yamljs {"kind":"Service","metadata":{"name":"web"},"spec":{"ports":[{"port":80}]},"data":{"mode":"fast"}}
two documents: js-yaml error: expected a single document in the stream, but found more
a list in a list: yamljs {"matrix":["- a\n- b"]}
a list in a list: js-yaml {"matrix":[["a","b"]]}
a plain 08: yamljs {"hour":0}
a plain 08: js-yaml {"hour":8}
a plain 1,5: yamljs {"weights":15}
a plain 1,5: js-yaml {"weights":"1,5"}
a text of two lines: yamljs {"text":"one\ntwo"}
a text of two lines: js-yaml {"text":"one two"}
END
diff want out
