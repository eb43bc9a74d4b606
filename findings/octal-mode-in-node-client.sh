#!/bin/sh
# @kubernetes/client-node 1.4.0 with js-yaml 4.1.1 (npm), compared with sigs.k8s.io/yaml
# v1.4.0 (kubectl 1.32).
#
# Seen: loadYaml of the Node client reads "defaultMode: 0400" of a manifest as the decimal
# number 400 and sends that; kubectl reads 256, octal 0400. As a file mode 400 is octal
# 0620. Only the spelling 0o400 means the same to both. Modes from 0644 on become numbers
# above 511, the greatest that the API accepts, and are refused; smaller ones are accepted.
# Expected: the same object from the same manifest. The Kubernetes documentation writes
# modes of volumes in YAML with a plain leading zero.
# Who is hurt: programs in Node that apply manifests which kubectl applies correctly: a
# Secret asked for as 0400 (the owner reads) is mounted as 0620 (the group writes).
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, mode := range []string{"0400", "0644", "0o400"} {
		var v struct{ DefaultMode int }
		if err := yaml.Unmarshal([]byte("defaultMode: "+mode), &v); err != nil {
			panic(err)
		}
		fmt.Printf("sigs.k8s.io/yaml       %s: %d, octal %04o\n", mode, v.DefaultMode, v.DefaultMode)
	}
}
EOF
cat >main.mjs <<'EOF'
import { loadYaml } from '@kubernetes/client-node'
for (const mode of ['0400', '0644', '0o400']) {
  const n = loadYaml('defaultMode: ' + mode).defaultMode
  console.log(`@kubernetes/client-node ${mode}: ${n}, octal ${n.toString(8).padStart(4, '0')}`)
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.4.0 2>/dev/null
npm install --silent --no-save --prefix . @kubernetes/client-node@1.4.0 js-yaml@4.1.1 >/dev/null
{ go run -mod=mod .; node main.mjs; } | tee out
cat >want <<'EOF'
sigs.k8s.io/yaml       0400: 256, octal 0400
sigs.k8s.io/yaml       0644: 420, octal 0644
sigs.k8s.io/yaml       0o400: 256, octal 0400
@kubernetes/client-node 0400: 400, octal 0620
@kubernetes/client-node 0644: 644, octal 1204
@kubernetes/client-node 0o400: 256, octal 0400
EOF
diff want out
