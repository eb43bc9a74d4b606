#!/bin/sh
# helm.sh/helm/v3 v3.22.0 (4.3.2 has the same order), the flags that set values.
#
# Seen: the flags are applied by kind, and not in the order of the command line: --set-json, then --set, --set-string, --set-file and
# --set-literal. `--set-string tag=1.0 --set tag=2.0` installs 1.0. The help says for each flag that the last one wins.
# Expected: the right-most flag, as for several of one kind.
# Who is hurt: pipelines that append --set to the arguments of a template with --set-string: the override for one cluster is ignored
# without an error, and --set-json never overrides anything.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/getter"
)

func main() {
	for _, line := range []string{
		"--set tag=1.0 --set tag=2.0",
		"--set tag=1.0 --set-string tag=2.0",
		"--set-string tag=1.0 --set tag=2.0",
		"--set tag=1.0 --set-json tag=\"2.0\"",
		"--set-literal tag=1.0 --set-string tag=2.0",
	} {
		var options values.Options
		flags := pflag.NewFlagSet("helm", pflag.PanicOnError)
		flags.StringArrayVar(&options.Values, "set", nil, "")
		flags.StringArrayVar(&options.StringValues, "set-string", nil, "")
		flags.StringArrayVar(&options.JSONValues, "set-json", nil, "")
		flags.StringArrayVar(&options.LiteralValues, "set-literal", nil, "")
		if err := flags.Parse(strings.Fields(line)); err != nil {
			panic(err)
		}
		merged, err := options.MergeValues(getter.Providers{})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %v\n", line, merged["tag"])
	}
}
EOF
go mod init finding 2>/dev/null
go get helm.sh/helm/v3@v3.22.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
--set tag=1.0 --set tag=2.0: 2.0
--set tag=1.0 --set-string tag=2.0: 2.0
--set-string tag=1.0 --set tag=2.0: 1.0
--set tag=1.0 --set-json tag="2.0": 1.0
--set-literal tag=1.0 --set-string tag=2.0: 1.0
EOF
diff want out
