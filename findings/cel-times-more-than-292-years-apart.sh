#!/bin/sh
# github.com/google/cel-go v0.29.2, the expressions of definitions and admission policies, and @bufbuild/cel 0.6.1 (npm).
#
# Seen: a difference of two timestamps is an error if it does not fit into Go's time.Duration, which is 292 years. 9999-12-31, which many
# write for "never", minus now is "integer overflow"; the library in JavaScript has the same limit. Comparing the two is fine, and
# so is adding a duration to the earlier one.
# Expected: a duration, or the limit beside the year 9999 of timestamps in the documentation of rules.
# Who is hurt: authors of rules like `timestamp(self.notAfter) - now < duration("2160h")`: every test with real dates passes, and the first
# object that never expires is refused with an error of the expression.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >expressions <<'EOF'
timestamp("2299-12-31T00:00:00Z") - timestamp("2026-01-01T00:00:00Z") > duration("1h")
timestamp("9999-12-31T00:00:00Z") - timestamp("2026-01-01T00:00:00Z") > duration("1h")
timestamp("9999-12-31T00:00:00Z") > timestamp("2026-01-01T00:00:00Z") + duration("1h")
EOF
cat >main.go <<'EOF'
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
)

func main() {
	env, err := cel.NewEnv()
	if err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		ast, issues := env.Compile(lines.Text())
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		value, _, err := program.Eval(map[string]any{})
		if err != nil {
			fmt.Println("cel-go: error:", err)
			continue
		}
		fmt.Println("cel-go:", value.Value())
	}
}
EOF
npm install --silent --no-save --prefix . @bufbuild/cel@0.6.1 >/dev/null
cat >main.mjs <<'EOF'
import fs from 'node:fs'
import { run } from '@bufbuild/cel'

for (const expression of fs.readFileSync('expressions', 'utf8').trim().split('\n')) {
  const value = run(expression)
  console.log('@bufbuild/cel:', typeof value === 'boolean' ? value : String(value))
}
EOF
go mod init finding 2>/dev/null
go get github.com/google/cel-go@v0.29.2 2>/dev/null
{ go run -mod=mod . <expressions; node main.mjs; } | tee out
cat >want <<'EOF'
cel-go: true
cel-go: error: integer overflow
cel-go: true
@bufbuild/cel: true
@bufbuild/cel: Error: duration out of range
@bufbuild/cel: true
EOF
diff want out
