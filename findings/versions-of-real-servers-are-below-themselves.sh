#!/bin/sh
# k8s.io/apimachinery v0.36.2 (util/version), github.com/Masterminds/semver/v3 v3.5.0 (Helm), github.com/hashicorp/go-version v1.9.0
# (Terraform), github.com/blang/semver/v4 v4.0.0, semver 7.7.3 (npm), python3-packaging 23.0 of Debian 12.
#
# Seen: GKE and EKS say `v1.32.3-gke.1785003` and `v1.32.3-eks-bcf3d70`, which is a prerelease to every library but ParseGeneric of
# apimachinery: v1.32.3-gke.1785003 is not `>=1.32.3`, and by three libraries' ranges v1.33.0-gke.1 is not either.
# Python's packaging refuses both names. k3s, which says `+k3s1`, passes everywhere.
# Expected: a server of release 1.32.3 is at least 1.32.3; the libraries follow Semantic Versioning, the vendors do not.
# Who is hurt: charts (kubeVersion), providers and operators that switch a feature on from a version on: with the large
# vendors, and there only, they run as on an older server. Tests on kind and k3s find nothing. `>=1.32.3-0` helps.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-packaging=23.0-1 >/dev/null 2>&1
dpkg-deb -x ./*.deb .
npm install --silent --no-save --prefix . semver@7.7.3 >/dev/null
printf '%s\n' v1.32.3 v1.32.3-gke.1785003 v1.32.3-eks-bcf3d70 v1.32.3+k3s1 v1.33.0-gke.1 >versions
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"
	"strings"

	masterminds "github.com/Masterminds/semver/v3"
	"github.com/blang/semver/v4"
	hashicorp "github.com/hashicorp/go-version"
	"k8s.io/apimachinery/pkg/util/version"
)

func main() {
	text, err := os.ReadFile("versions")
	if err != nil {
		panic(err)
	}
	libraries := []struct {
		name    string
		atLeast func(string) (bool, error)
	}{
		{"ParseSemantic", func(text string) (bool, error) {
			got, err := version.ParseSemantic(text)
			return err == nil && got.AtLeast(version.MustParseSemantic("1.32.3")), err
		}},
		{"ParseGeneric", func(text string) (bool, error) {
			got, err := version.ParseGeneric(text)
			return err == nil && got.AtLeast(version.MustParseGeneric("1.32.3")), err
		}},
		{"Masterminds", func(text string) (bool, error) {
			got, err := masterminds.NewVersion(text)
			if err != nil {
				return false, err
			}
			constraint, err := masterminds.NewConstraint(">=1.32.3")
			return err == nil && constraint.Check(got), err
		}},
		{"go-version", func(text string) (bool, error) {
			got, err := hashicorp.NewVersion(text)
			if err != nil {
				return false, err
			}
			constraint, err := hashicorp.NewConstraint(">= 1.32.3")
			return err == nil && constraint.Check(got), err
		}},
		{"blang", func(text string) (bool, error) {
			got, err := semver.ParseTolerant(text)
			return err == nil && semver.MustParseRange(">=1.32.3")(got), err
		}},
	}
	for _, library := range libraries {
		fmt.Printf("%-13s", library.name)
		for _, text := range strings.Fields(string(text)) {
			ok, err := library.atLeast(text)
			if err != nil {
				fmt.Print(" error")
				continue
			}
			fmt.Printf(" %v", ok)
		}
		fmt.Println()
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/Masterminds/semver/v3@v3.5.0 github.com/blang/semver/v4@v4.0.0 github.com/hashicorp/go-version@v1.9.0 k8s.io/apimachinery@v0.36.2 2>/dev/null
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import semver from 'semver'

console.log('npm semver   ', fs.readFileSync('versions', 'utf8').trim().split('\n').map((text) => semver.satisfies(text, '>=1.32.3')).join(' '))
EOF
cat >main.py <<'EOF'
from packaging.version import InvalidVersion, Version

results = []
for text in open('versions').read().split():
    try:
        results.append(str(Version(text) >= Version('1.32.3')).lower())
    except InvalidVersion:
        results.append('error')
print('packaging    ', *results)
EOF
{
  printf '%-13s %s\n' '>=1.32.3' "$(paste -sd' ' versions)"
  go run -mod=mod .
  node main.mjs
  PYTHONPATH=usr/lib/python3/dist-packages /usr/bin/python3 main.py
} | tee out
cat >want <<'EOF'
>=1.32.3      v1.32.3 v1.32.3-gke.1785003 v1.32.3-eks-bcf3d70 v1.32.3+k3s1 v1.33.0-gke.1
ParseSemantic true false false true true
ParseGeneric  true true true true true
Masterminds   true false false true false
go-version    true false false true false
blang         true false false true true
npm semver    true false false true false
packaging     true error error true error
EOF
diff want out
