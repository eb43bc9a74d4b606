#!/bin/sh
# packageurl-js 2.0.1 (npm) and github.com/package-url/packageurl-go v0.1.7: the names of packages in SBOMs.
#
# Seen: the same package URL comes out differently. Of a Go module the library for JavaScript keeps capitals, which the one
# for Go writes in lower case, as the specification has it; of an OCI image it is the reverse. The one for JavaScript turns
# each + of a qualifier into a blank, and where the version of a Go module is not strictly semantic, as in v1.22 or
# v1.2.3-rc.01, it fails with "ReferenceError: throws is not defined".
# Expected: one canonical text, for that is what package URLs are compared by.
# Who is hurt: scanners and inventories that match a list made in Go (of a cluster's images) with one made in Node:
# github.com/Masterminds/semver, part of Helm, and github.com/Azure are not found again, nor are advisories for
# them; a link to c++.tgz leads nowhere; and one entry std@v1.22 stops the program.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >purls <<'EOF'
pkg:golang/github.com/Masterminds/semver/v3@v3.2.1
pkg:golang/std@v1.22
pkg:golang/example.test/a@v1.2.3-rc.01
pkg:generic/a@1?download_url=https://a.test/c++.tgz
pkg:oci/Web@sha256:244fd47e?repository_url=ghcr.io/a
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/package-url/packageurl-go"
)

func main() {
	file, err := os.Open("purls")
	if err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		purl, err := packageurl.FromString(lines.Text())
		if err != nil {
			fmt.Println("Go:        ", err)
			continue
		}
		fmt.Println("Go:        ", purl.ToString())
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/package-url/packageurl-go@v0.1.7 2>/dev/null
go run -mod=mod . | tee out
npm install --silent --no-save --prefix . packageurl-js@2.0.1 >/dev/null
cat >main.mjs <<'EOF'
import { readFileSync } from 'node:fs'
import { PackageURL } from 'packageurl-js'

for (const line of readFileSync('purls', 'utf8').trim().split('\n')) {
  try {
    console.log('JavaScript:', PackageURL.fromString(line).toString())
  } catch (e) {
    console.log('JavaScript:', `${e.name}: ${e.message}`)
  }
}
EOF
node main.mjs | tee -a out
cat >want <<'EOF'
Go:         pkg:golang/github.com/masterminds/semver/v3@v3.2.1
Go:         pkg:golang/std@v1.22
Go:         pkg:golang/example.test/a@v1.2.3-rc.01
Go:         pkg:generic/a@1?download_url=https:%2F%2Fa.test%2Fc%2B%2B.tgz
Go:         pkg:oci/Web@sha256:244fd47e?repository_url=ghcr.io%2Fa
JavaScript: pkg:golang/github.com/Masterminds/semver/v3@v3.2.1
JavaScript: ReferenceError: throws is not defined
JavaScript: ReferenceError: throws is not defined
JavaScript: pkg:generic/a@1?download_url=https%3A%2F%2Fa.test%2Fc%20%20.tgz
JavaScript: pkg:oci/web@sha256:244fd47e?repository_url=ghcr.io%2Fa
EOF
diff want out
