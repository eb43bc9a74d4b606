#!/bin/sh
# cdk8s 2.70.106 with cdk8s-plus-33 2.5.57 and constructs 10.8.1 (npm): Include of a manifest, and files of a ConfigMap.
#
# Seen: Include reads two numbers with a colon by base 60, as YAML 1.1 has it and kubectl does not: the window 22:00 becomes 1320, the mapping 8443:443 stays. A
# date gets a time, 0o400 is a text, and a List gets a name. ConfigMap.addFile and addDirectory read each file as UTF-8, so that a key store or an image
# has three bytes (U+FFFD) for each one that does not fit, in `data`; `binaryData` is left to the caller.
# Expected: the objects that kubectl makes of the same file, and the bytes of a file, as `kubectl create configmap --from-file` keeps them.
# Who is hurt: charts that include a vendor's manifest: values of ConfigMaps and annotations are refused as numbers, or changed inside of a custom resource; a
# Java key store in the ConfigMap cannot be opened.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . cdk8s-plus-33@2.5.57 cdk8s@2.70.106 constructs@10.8.1 >/dev/null
cat >manifest.yaml <<'END'
apiVersion: example.com/v1
kind: Window
metadata: {name: night}
spec: {from: 22:00, until: 5:59:59, port: 8443:443, since: 2024-01-01, mode: 0o400}
---
apiVersion: v1
kind: List
items: []
END
cat >main.cjs <<'END'
const fs = require('node:fs')
const { Include, Testing } = require('cdk8s')
const { ConfigMap } = require('cdk8s-plus-33')

fs.writeFileSync('store.p12', Buffer.from([0x30, 0x82, 0x0a, 0xff]))
const chart = Testing.chart()
new Include(chart, 'include', { url: 'manifest.yaml' })
new ConfigMap(chart, 'files').addFile('store.p12')
const [window, list, map] = Testing.synth(chart)
console.log(JSON.stringify(window.spec))
console.log(list.kind, JSON.stringify(list.metadata))
console.log('30820aff:', Buffer.from(map.data['store.p12']).toString('hex'), 'binaryData:', map.binaryData)
END
node main.cjs | tee out
cat >want <<'END'
{"from":1320,"mode":"0o400","port":"8443:443","since":"2024-01-01T00:00:00.000Z","until":21599}
List {"name":"test-include-object0-list-c83508ee"}
30820aff: 30efbfbd0aefbfbd binaryData: undefined
END
diff want out
