#!/bin/sh
# helm.sh/helm/v3 v3.22.0, .Files.Glob with AsConfig and AsSecrets in templates (4.3.2 has the same lines).
#
# Seen: the key is the last part of the path, and of two files with one name in two directories one is left. Which one is drawn by the order of a Go map, so that two
# renderings of the same chart differ. A file that is no UTF-8 is written into `data` of the ConfigMap with U+FFFD for what does not fit. Files.Get of a file that
# is not there is the empty text. None of it is an error.
# Expected: an error for two files with one key, as `kubectl create configmap --from-file` has it, and the same output for the same chart.
# Who is hurt: charts with a directory for each component (`conf/*/app.yaml`): one component runs with the other's configuration, which one changes from release to
# release, and a checksum of the ConfigMap in the Pods' annotations replaces them all.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'END'
package main

import (
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	render := func(template string) string {
		c := &chart.Chart{
			Metadata: &chart.Metadata{Name: "web", Version: "1.0.0", APIVersion: "v2"},
			Files: []*chart.File{
				{Name: "conf/front/app.yaml", Data: []byte("front")},
				{Name: "conf/back/app.yaml", Data: []byte("back")},
				{Name: "store.p12", Data: []byte{0x30, 0x82, 0xff}},
			},
			Templates: []*chart.File{{Name: "templates/t.yaml", Data: []byte(template)}},
		}
		values, err := chartutil.ToRenderValues(c, nil, chartutil.ReleaseOptions{}, nil)
		if err != nil {
			panic(err)
		}
		out, err := engine.Render(c, values)
		if err != nil {
			return err.Error()
		}
		return strings.ReplaceAll(out["web/templates/t.yaml"], "\n", " ")
	}
	seen := map[string]bool{}
	for range 200 {
		seen[render(`{{ (.Files.Glob "conf/**").AsConfig }}`)] = true
	}
	fmt.Printf("AsConfig of two files, results of 200 renderings: %v\n", seen)
	seen = map[string]bool{}
	for range 200 {
		seen[render(`{{ (.Files.Glob "conf/**").AsSecrets }}`)] = true
	}
	fmt.Printf("AsSecrets of two files: %v\n", seen)
	fmt.Printf("AsConfig of 3082ff: %+q\n", render(`{{ (.Files.Glob "store.p12").AsConfig }}`))
	fmt.Printf("Files.Get of a file that is not there: %q\n", render(`{{ .Files.Get "conf/missing.yaml" }}`))
}
END
go mod init finding 2>/dev/null
go get helm.sh/helm/v3@v3.22.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'END'
AsConfig of two files, results of 200 renderings: map[app.yaml: back:true app.yaml: front:true]
AsSecrets of two files: map[app.yaml: YmFjaw==:true app.yaml: ZnJvbnQ=:true]
AsConfig of 3082ff: "store.p12: 0\ufffd\ufffd"
Files.Get of a file that is not there: ""
END
diff want out
