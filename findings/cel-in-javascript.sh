#!/bin/sh
# github.com/google/cel-go v0.29.2; @bufbuild/cel 0.6.1, @marcbachmann/cel-js 8.0.0 and cel-js 0.8.2 (npm).
#
# Seen: the same valid expressions have other results in JavaScript. All three order strings by
# UTF-16 units, where cel-go orders by code points. @bufbuild/cel says that a map does not have a
# key whose value is null, and counts the milliseconds within a second where cel-go counts all of a duration.
# @marcbachmann/cel-js calls timestamps equal that differ by less than a millisecond. In cel-js 7/2
# is 3.5, and an error on the left of || or && is the result whatever the right side says.
# Expected: the results of one language definition.
# Who is hurt: editors, playgrounds and unit tests that try validation rules and admission
# policies in a browser or in Node: has(object.spec.x) for an explicit null and integer division
# are in many of them, and the cluster decides otherwise.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >expressions <<'EOF'
has(x.none)
7 / 2
1 / 0 == 1 || true
"\uFF5E" < "\U0001F600"
duration("1.5s").getMilliseconds()
timestamp("2024-01-01T00:00:00.1234Z") == timestamp("2024-01-01T00:00:00.123Z")
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
	env, err := cel.NewEnv(cel.Variable("x", cel.DynType))
	if err != nil {
		panic(err)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		ast, issues := env.Compile(in.Text())
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			panic(err)
		}
		value, _, err := program.Eval(map[string]any{"x": map[string]any{"none": nil}})
		fmt.Println("cel-go:", in.Text(), "is", value, err)
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/google/cel-go@v0.29.2 2>/dev/null
go run -mod=mod . <expressions | sed 's/ <nil>$//' | tee out
npm install --silent --no-save --prefix . @bufbuild/cel@0.6.1 @marcbachmann/cel-js@8.0.0 cel-js@0.8.2 >/dev/null
cat >main.mjs <<'EOF'
import { readFileSync } from 'node:fs'
import { run } from '@bufbuild/cel'
import { evaluate } from '@marcbachmann/cel-js'
import { evaluate as other } from 'cel-js'
for (const [name, f] of [['@bufbuild/cel', run], ['@marcbachmann/cel-js', evaluate], ['cel-js', other]])
  for (const text of readFileSync('expressions', 'utf8').trim().split('\n')) {
    let value
    try { value = f(text, { x: { none: null } }) } catch { value = 'an error' }
    console.log(`${name}: ${text} is ${value}`)
  }
EOF
node main.mjs | tee -a out
cat >want <<'EOF'
cel-go: has(x.none) is true
cel-go: 7 / 2 is 3
cel-go: 1 / 0 == 1 || true is true
cel-go: "\uFF5E" < "\U0001F600" is true
cel-go: duration("1.5s").getMilliseconds() is 1500
cel-go: timestamp("2024-01-01T00:00:00.1234Z") == timestamp("2024-01-01T00:00:00.123Z") is false
@bufbuild/cel: has(x.none) is false
@bufbuild/cel: 7 / 2 is 3
@bufbuild/cel: 1 / 0 == 1 || true is true
@bufbuild/cel: "\uFF5E" < "\U0001F600" is false
@bufbuild/cel: duration("1.5s").getMilliseconds() is 500
@bufbuild/cel: timestamp("2024-01-01T00:00:00.1234Z") == timestamp("2024-01-01T00:00:00.123Z") is false
@marcbachmann/cel-js: has(x.none) is true
@marcbachmann/cel-js: 7 / 2 is 3
@marcbachmann/cel-js: 1 / 0 == 1 || true is true
@marcbachmann/cel-js: "\uFF5E" < "\U0001F600" is false
@marcbachmann/cel-js: duration("1.5s").getMilliseconds() is 1500
@marcbachmann/cel-js: timestamp("2024-01-01T00:00:00.1234Z") == timestamp("2024-01-01T00:00:00.123Z") is true
cel-js: has(x.none) is true
cel-js: 7 / 2 is 3.5
cel-js: 1 / 0 == 1 || true is an error
cel-js: "\uFF5E" < "\U0001F600" is false
cel-js: duration("1.5s").getMilliseconds() is an error
cel-js: timestamp("2024-01-01T00:00:00.1234Z") == timestamp("2024-01-01T00:00:00.123Z") is an error
EOF
diff want out
