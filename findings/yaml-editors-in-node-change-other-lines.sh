#!/bin/sh
# yaml 2.9.1 (its Document, which keeps comments), and yawn-yaml 3.0.0 and yaml-diff-patch 2.0.0 on it (npm): they change one value of a YAML file.
#
# Seen: a change of `replicas` writes the other numbers anew: defaultMode: 0400 becomes 400, which kubectl reads as the mode 0620, an integer above 2^53 is
# rounded, and the commit 12e4567 becomes .inf. Comments and quotes are kept.
# Expected: the rest of the file as it was; yawn-yaml is described as a parser "that preserves comments and styling".
# Who is hurt: bots that bump a version or a number of replicas in a repository of manifests: the mode of a mounted key changes in a commit about
# replicas, and a large identity becomes its neighbor.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . yaml@2.9.1 yawn-yaml@3.0.0 yaml-diff-patch@2.0.0 >/dev/null
cat >main.mjs <<'EOF'
import { createRequire } from 'node:module'
import { parseDocument } from 'yaml'
import { yamlPatch } from 'yaml-diff-patch'

const yawn = createRequire(import.meta.url)('yawn-yaml')
const Yawn = yawn.default ?? yawn
const manifest = `# who runs what
replicas: 3
defaultMode: 0400
tenant: 9007199254740993
commit: 12e4567
limit: 1e3
port: 0x1F
version: 1.10
`
const editors = {
  yaml: () => {
    const document = parseDocument(manifest)
    document.set('replicas', 5)
    return document.toString()
  },
  'yawn-yaml': () => {
    const file = new Yawn(manifest)
    file.json = { ...file.json, replicas: 5 }
    return file.yaml
  },
  'yaml-diff-patch': () => yamlPatch(manifest, [{ op: 'replace', path: '/replicas', value: 5 }]),
}
for (const [name, edit] of Object.entries(editors)) {
  console.log(name)
  console.log(edit().trimEnd())
}
EOF
node main.mjs | tee out
cat >want <<'EOF'
yaml
# who runs what
replicas: 5
defaultMode: 400
tenant: 9007199254740992
commit: .inf
limit: 1e+3
port: 0x1f
version: 1.10
yawn-yaml
# who runs what
replicas: 5
defaultMode: 400
tenant: 9007199254740992
commit: .inf
limit: 1e+3
port: 0x1f
version: 1.10
yaml-diff-patch
# who runs what
replicas: 5
defaultMode: 400
tenant: 9007199254740992
commit: .inf
limit: 1e+3
port: 0x1f
version: 1.10
EOF
diff want out
