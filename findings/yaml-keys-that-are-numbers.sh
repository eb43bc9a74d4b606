#!/bin/sh
# sigs.k8s.io/yaml v1.4.0 (kubectl and the API server 1.32).
#
# Seen: unlike values, KEYS that look like numbers are turned into numbers and back into
# text, even for a map of strings: in the data of a ConfigMap "1.10:" becomes the key "1.1",
# "12e5:" (an abbreviated commit) "1.2e+06" and "0644:" "420". Two keys may fall together,
# and the later one wins: with "1.1" and 1.1 strict decoding does not notice either.
# Expected: the key that is written, as the value "1.10" of a string field is refused rather
# than changed; at least an error from strict decoding when two keys become one.
# Who is hurt: ConfigMaps with one key per version or commit: the file that is mounted has
# another name, or an entry is missing, and neither kubectl nor the server warns.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

func main() {
	for _, text := range []string{
		"{1.9: old, 1.10: new}", "{12e5: x}", "{0644: x}", "{'1.1': first, 1.10: second}", "{1.1: first, 1.10: second}",
	} {
		loose, err := yaml.YAMLToJSON([]byte(text))
		strict, strictErr := yaml.YAMLToJSONStrict([]byte(text))
		fmt.Printf("%s: %s %v; strict: %s refused: %v\n", text, loose, err, strict, strictErr != nil)
	}
}
EOF
go mod init finding 2>/dev/null
go get sigs.k8s.io/yaml@v1.4.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
{1.9: old, 1.10: new}: {"1.1":"new","1.9":"old"} <nil>; strict: {"1.1":"new","1.9":"old"} refused: false
{12e5: x}: {"1.2e+06":"x"} <nil>; strict: {"1.2e+06":"x"} refused: false
{0644: x}: {"420":"x"} <nil>; strict: {"420":"x"} refused: false
{'1.1': first, 1.10: second}: {"1.1":"second"} <nil>; strict: {"1.1":"second"} refused: false
{1.1: first, 1.10: second}: {"1.1":"second"} <nil>; strict:  refused: true
EOF
diff want out
