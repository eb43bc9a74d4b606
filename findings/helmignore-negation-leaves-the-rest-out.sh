#!/bin/sh
# helm.sh/helm/v4 v4.3.2 and helm.sh/helm/v3 v3.22.0, their reader of .helmignore.
#
# Seen: `!README.md` in a .helmignore is "what is not README.md is ignored": the chart loses Chart.yaml, its templates and all the rest. After `*.md` it does
# not bring README.md back either, since the first rule that matches ends the search: of the two lines together nothing is left.
# Expected: an exception from the rules before it, as in a .gitignore, whose format "closely follows" says the documentation.
# Who is hurt: charts with a line copied from a .gitignore: where it makes an exception there, Helm no longer sees Chart.yaml, though the file is there.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
mkdir -p chart/templates
touch chart/Chart.yaml chart/README.md chart/NOTES.md chart/templates/deployment.yaml
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"
	"strings"

	v3 "helm.sh/helm/v3/pkg/ignore"
	v4 "helm.sh/helm/v4/pkg/ignore"
)

type rules interface {
	Ignore(path string, info os.FileInfo) bool
}

func main() {
	for _, text := range []string{"*.md\n", "!README.md\n", "*.md\n!README.md\n"} {
		older, err := v3.Parse(strings.NewReader(text))
		if err != nil {
			panic(err)
		}
		newer, err := v4.Parse(strings.NewReader(text))
		if err != nil {
			panic(err)
		}
		for _, c := range []struct {
			name  string
			rules rules
		}{{"v3", older}, {"v4", newer}} {
			var kept []string
			for _, path := range []string{"Chart.yaml", "README.md", "NOTES.md", "templates", "templates/deployment.yaml"} {
				info, err := os.Stat("chart/" + path)
				if err != nil {
					panic(err)
				}
				if !c.rules.Ignore(path, info) {
					kept = append(kept, path)
				}
			}
			fmt.Printf("%s, %q: %q\n", c.name, text, kept)
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get helm.sh/helm/v3@v3.22.0 helm.sh/helm/v4@v4.3.2 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
v3, "*.md\n": ["Chart.yaml" "templates" "templates/deployment.yaml"]
v4, "*.md\n": ["Chart.yaml" "templates" "templates/deployment.yaml"]
v3, "!README.md\n": ["README.md"]
v4, "!README.md\n": ["README.md"]
v3, "*.md\n!README.md\n": []
v4, "*.md\n!README.md\n": []
EOF
diff want out
