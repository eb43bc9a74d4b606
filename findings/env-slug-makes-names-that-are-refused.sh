#!/bin/sh
# @socialgouv/env-slug 1.2.3 (npm, "slug for K8S namespace from git branch"), with k8s.io/apimachinery v0.37.2.
#
# Seen: "+", "(", ")", "'" and ":" in the name of a branch stay in the namespace's: fix(api) is "fix(api)". "#" is left out.
# Expected: a DNS label, which is what the package is for.
# Who is hurt: preview environments by branch: those named like commits, fix(api), and those of a version, 1.2+build, cannot
# be created, and the error comes from the server, after the pipeline's tests of the name.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @socialgouv/env-slug@1.2.3 >/dev/null
cat >main.js <<'EOF'
const { generate } = require('@socialgouv/env-slug')
for (const branch of ['feature/login', 'fix(api)', 'release-1.2+build', "jane's-test", 'fix:crash', 'feature#12']) console.log(`${branch} ${generate(branch)}`)
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		branch, name, _ := strings.Cut(lines.Text(), " ")
		fmt.Printf("%s: %s, a namespace: %v\n", branch, name, len(validation.IsDNS1123Label(name)) == 0)
	}
}
EOF
go mod init finding 2>/dev/null
go get k8s.io/apimachinery@v0.37.2 2>/dev/null
node main.js | go run -mod=mod . | tee out
cat >want <<'EOF'
feature/login: feature-login-5kix3n, a namespace: true
fix(api): fix(api), a namespace: false
release-1.2+build: release-1-2+build-25sx2v, a namespace: false
jane's-test: jane's-test, a namespace: false
fix:crash: fix:crash, a namespace: false
feature#12: feature12-mfg68p, a namespace: true
EOF
diff want out
