#!/bin/sh
# github.com/Masterminds/sprig/v3 v3.3.0, the functions of templates in Helm 3 and 4.
#
# Seen: a function that cannot do its work returns a value. `b64dec` returns the text of the error as if it were the content,
# for base64url, which tokens use, and without padding. `date` of a text ignores it and formats the current time.
# `duration` of "1h" is 0s. `int` takes a leading zero for octal, and is 0 for what it cannot read: "010" is 8, "08" and "1.5"
# are 0, so `add "08" 1` is 1.
# Expected: an error of the template, as `mustDateModify` and its like report.
# Who is hurt: users of charts: a Secret holds "illegal base64 data at input byte 0"; an annotation with a date changes with each
# rendering, and all Pods are replaced; a backup for "08" runs at midnight. Helm reports success each time.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"os"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

const text = `b64dec "_-8":     {{ b64dec "_-8" }}
b64dec "YWI":     {{ b64dec "YWI" }}
date of a text:   {{ if eq (date "2006-01-02" "2001-02-03") .Today }}today{{ else }}{{ date "2006-01-02" "2001-02-03" }}{{ end }}
duration "1h":    {{ duration "1h" }}
int "7":          {{ int "7" }}
int "08":         {{ int "08" }}
int "010":        {{ int "010" }}
int "1.5":        {{ int "1.5" }}
int 1.5:          {{ int 1.5 }}
add "08" 1:       {{ add "08" 1 }}
`

func main() {
	parsed := template.Must(template.New("").Funcs(sprig.TxtFuncMap()).Parse(text))
	if err := parsed.Execute(os.Stdout, map[string]string{"Today": time.Now().Format("2006-01-02")}); err != nil {
		panic(err)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/Masterminds/sprig/v3@v3.3.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
b64dec "_-8":     illegal base64 data at input byte 0
b64dec "YWI":     illegal base64 data at input byte 0
date of a text:   today
duration "1h":    0s
int "7":          7
int "08":         0
int "010":        8
int "1.5":        0
int 1.5:          1
add "08" 1:       1
EOF
diff want out
