#!/bin/sh
# github.com/drone/envsubst v1.0.3 (clusterctl's and Flux's substitution come from it) and github.com/a8m/envsubst v1.4.3, beside envsubst of
# gettext 0.21 (Debian 12).
#
# Seen: drone does not see $A, and takes ${A:+x} for ${A}, where sh writes x. a8m writes the variable for ${A#v} and ${A/v/w}, nothing
# for ${#A}, and takes the "$5" out of a text. gettext's knows $A and ${A} only, in "$${A}" too, which is the escape of the
# other two. Little of it is an error: drone's ${A+x} and ${A-d} are.
# Expected: what sh does with the same expression, or an error for one that is not supported.
# Who is hurt: templates of clusters and manifests that move between clusterctl, Flux and pipelines with another envsubst: a default or a
# pattern is written out as something else, and prices, regular expressions and shell scripts in ConfigMaps lose their "$1".
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download gettext-base=0.21-12 >/dev/null 2>&1
for package in *.deb; do dpkg-deb -x "$package" .; done
cat >lines <<'EOF'
$A
${A}
${NONE:-d}
${NONE-d}
${A:+x}
${#A}
${A#v}
${A/v/w}
$${A}
costs $5
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"

	a8m "github.com/a8m/envsubst"
	"github.com/drone/envsubst"
)

func gettext(line string) (string, error) {
	command := exec.Command("usr/bin/envsubst")
	command.Stdin = strings.NewReader(line)
	output, err := command.Output()
	return string(output), err
}

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := lines.Text()
		fmt.Printf("%s:", line)
		for _, f := range []func(string) (string, error){envsubst.EvalEnv, a8m.String, gettext} {
			result, err := f(line)
			if err != nil {
				fmt.Print(" error;")
				continue
			}
			fmt.Printf(" %q;", result)
		}
		fmt.Println()
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/drone/envsubst@v1.0.3 github.com/a8m/envsubst@v1.4.3 2>/dev/null
A=v1.2 go run -mod=mod . <lines | tee out
cat >want <<'EOF'
$A: "$A"; "v1.2"; "v1.2";
${A}: "v1.2"; "v1.2"; "v1.2";
${NONE:-d}: "d"; "d"; "${NONE:-d}";
${NONE-d}: error; "d"; "${NONE-d}";
${A:+x}: "v1.2"; "x"; "${A:+x}";
${#A}: "4"; ""; "${#A}";
${A#v}: "1.2"; "v1.2"; "${A#v}";
${A/v/w}: "w1.2"; "v1.2"; "${A/v/w}";
$${A}: "${A}"; "${A}"; "$v1.2";
costs $5: "costs $5"; "costs "; "costs $5";
EOF
diff want out
