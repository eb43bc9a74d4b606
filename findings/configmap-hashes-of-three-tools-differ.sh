#!/bin/sh
# k8s.io/kubectl v0.37.2 (`create configmap --append-hash`), sigs.k8s.io/kustomize/api v0.21.1 (the hash in names) and kubernetes.core as in Debian 12's
# ansible 7.7.0 (`k8s` with append_hash, and the filter k8s_config_resource_name).
#
# Seen: kustomize leaves the name out of its hash (it looks for a member "metadata/name") and `immutable`, so that it agrees with kubectl for no ConfigMap. Ansible agrees
# with kubectl for plain text only: it escapes ü and keeps <, > and &, Go does the reverse, so that a URL with & gives another name. binaryData and
# immutable are not in Ansible's hash: two ConfigMaps with different files have one name.
# Expected: one name for one content, and another one for another. The code of both was made after kubectl's, and both say so.
# Who is hurt: who makes the ConfigMap with one tool and names it with another: the Pod waits for a ConfigMap that does not exist. And with
# Ansible a changed binary file changes no name, so that no Pod is replaced, which the hash is for.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download ansible=7.7.0+dfsg-3+deb12u1 ansible-core=2.14.18-0+deb12u2 python3-jinja2 python3-markupsafe \
  python3-yaml >/dev/null 2>&1
dpkg-deb --fsys-tarfile ansible_*.deb | tar -x ./usr/lib/python3/dist-packages/ansible_collections/kubernetes
rm ansible_*.deb
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >maps <<'EOF'
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"text"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"https://example.com/?a=1&b=2"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"Grüße"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"text"},"immutable":true}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"text"},"binaryData":{"b":"AAE="}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"b":"AAE="}}
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/hash"
	"sigs.k8s.io/kustomize/api/hasher"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var object corev1.ConfigMap
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			panic(err)
		}
		kubectl, err := hash.ConfigMapHash(&object)
		if err != nil {
			panic(err)
		}
		kustomize, err := (&hasher.Hasher{}).Hash(yaml.MustParse(lines.Text()))
		if err != nil {
			panic(err)
		}
		fmt.Printf("kubectl %s, kustomize %s,\n", kubectl, kustomize)
	}
}
EOF
cat >main.py <<'EOF'
import json

from ansible_collections.kubernetes.core.plugins.module_utils.hashes import generate_hash

for line in open('maps'):
    print('ansible ' + generate_hash(json.loads(line)))
EOF
go mod init finding 2>/dev/null
go get k8s.io/kubectl@v0.37.2 sigs.k8s.io/kustomize/api@v0.21.1 2>/dev/null
go run -mod=mod . <maps >go.out
PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 -W ignore main.py >python.out
cut -d, -f4- maps | sed 's/}$//' >text
paste -d ' ' text go.out python.out | sed 's/ /: /' | tee out
cat >want <<'EOF'
"data":{"a":"text"}: kubectl 2hd48c4426, kustomize d4bkhg2b87, ansible 2hd48c4426
"data":{"a":"https://example.com/?a=1&b=2"}: kubectl kc98g6dk6t, kustomize c424kg7m69, ansible 2bcb7c8g9k
"data":{"a":"Grüße"}: kubectl 59h2hd2459, kustomize 7f8g6c9b6g, ansible k8gfddk92f
"data":{"a":"text"},"immutable":true: kubectl bm2679h6td, kustomize d4bkhg2b87, ansible 2hd48c4426
"data":{"a":"text"},"binaryData":{"b":"AAE="}: kubectl hm5t2mmfkc, kustomize t5k22f4744, ansible 2hd48c4426
"binaryData":{"b":"AAE="}: kubectl 4mk6cfffbd, kustomize 2d9h9fh2fh, ansible d549c8h4m9
EOF
diff want out
