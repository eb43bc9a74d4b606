#!/bin/sh
# helm.sh/helm/v3 v3.22.0, chartutil.ValidateAgainstSingleSchema (values.schema.json of a chart).
#
# Seen: `format` is checked if the schema names draft 7 or older, and ignored if it names 2019-09 or 2020-12, or none at all.
# Expected: one meaning; Helm's documentation says that values are validated against the schema. Up to 3.17, with
# another library, formats were checked without a draft, too.
# Who is hurt: charts whose schema has no "$schema", as most: `format: ipv4`, `email`, `date`, `hostname` guard nothing any
# more, and the wrong value is found by the cluster, or by nobody.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"helm.sh/helm/v3/pkg/chartutil"
)

func main() {
	for _, draft := range []string{"", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"} {
		head := ""
		if draft != "" {
			head = fmt.Sprintf(`"$schema": %q, `, draft)
		}
		schema := []byte(`{` + head + `"type": "object", "properties": {"address": {"type": "string", "format": "ipv4"}}}`)
		err := chartutil.ValidateAgainstSingleSchema(chartutil.Values{"address": "not an address"}, schema)
		fmt.Printf("%q refuses the address: %v\n", draft, err != nil)
	}
}
EOF
go mod init finding 2>/dev/null
go get helm.sh/helm/v3@v3.22.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
"" refuses the address: false
"http://json-schema.org/draft-07/schema#" refuses the address: true
"https://json-schema.org/draft/2019-09/schema" refuses the address: false
"https://json-schema.org/draft/2020-12/schema" refuses the address: false
EOF
diff want out
