#!/bin/sh
# github.com/google/cel-go v0.28.0 and v0.29.2, option CustomDecorator.
#
# Seen: a decorator that embeds the call which it decorates and overrides Eval, as decorators are
# written, is asked for each of the five calls with v0.28.0. With v0.29.2 the same source compiles,
# the program has the same result, and its Eval is never called: evaluation goes through a method
# Exec, which the wrapper has inherited from the call inside of it.
# Expected: either a build that fails, or Eval still called for a type that overrides it.
# Who is hurt: whoever traces, counts or mocks calls of expressions by a decorator. After an
# update of the library everything compiles, all results are right, and nothing is counted.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// counted counts the evaluations of a call and leaves the rest to it.
type counted struct {
	interpreter.InterpretableCall
	n *int
}

func (c counted) Eval(vars interpreter.Activation) ref.Val {
	*c.n++
	return c.InterpretableCall.Eval(vars)
}

func main() {
	n := 0
	env, err := cel.NewEnv(cel.Variable("a", cel.IntType))
	if err != nil {
		panic(err)
	}
	ast, issues := env.Compile("a + 1 > 2 && size('abc') == a + 2")
	if issues.Err() != nil {
		panic(issues.Err())
	}
	prg, err := env.Program(ast, cel.CustomDecorator(func(i interpreter.Interpretable) (interpreter.Interpretable, error) {
		if call, ok := i.(interpreter.InterpretableCall); ok {
			return counted{call, &n}, nil
		}
		return i, nil
	}))
	if err != nil {
		panic(err)
	}
	out, _, err := prg.Eval(map[string]any{"a": 5})
	fmt.Println(out, err, "evaluations seen by the decorator:", n)
}
EOF
export GOFLAGS=-mod=mod
go mod init finding 2>/dev/null
for version in v0.28.0 v0.29.2; do
	go get github.com/google/cel-go@$version 2>/dev/null
	go mod tidy 2>/dev/null
	echo "$version: $(go run .)"
done | tee out
cat >want <<'EOF'
v0.28.0: false <nil> evaluations seen by the decorator: 5
v0.29.2: false <nil> evaluations seen by the decorator: 0
EOF
diff want out
