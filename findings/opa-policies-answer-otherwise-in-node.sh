#!/bin/sh
# @open-policy-agent/opa-wasm 1.10.0 (npm, policies compiled to WebAssembly) beside github.com/open-policy-agent/opa v1.22.3, on the same policy.
#
# Seen: some functions come from libraries of JavaScript. sprintf writes an object as [object Object], a list without its brackets and a fraction cut for %d; %q is
# an error. yaml.unmarshal reads YAML 1.2, so that mode: 0400 is 400 and not 256, and yaml.marshal leaves `on` without quotes, which Kubernetes reads as true.
# regex.split keeps the groups and knows no (?i). An input of 0 or false is no input.
# Expected: the answers of OPA, or an error when the policy is compiled.
# Who is hurt: policies that are tested with `opa test` and run in browsers, gateways and services in Node: messages without their content, modes that differ, and
# manifests that mean something else.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @open-policy-agent/opa-wasm@1.10.0 >/dev/null
cat >p.rego <<'EOF'
package p

text := sprintf(input.format, input.values)

read := yaml.unmarshal(input.yaml)

written := yaml.marshal(input.value)

parts := regex.split(input.pattern, input.string)

given if input == input
EOF
cat >cases.json <<'EOF'
[
  ["text", {"format": "denied: %v", "values": [{"a": 1}]}],
  ["text", {"format": "denied: %v", "values": [["a", "b"]]}],
  ["text", {"format": "%d replicas", "values": [1.5]}],
  ["text", {"format": "%q", "values": ["a"]}],
  ["read", {"yaml": "on: yes\nmode: 0400\n"}],
  ["written", {"value": {"on": "yes", "tag": "0400"}}],
  ["parts", {"pattern": "(?i)x", "string": "aXb"}],
  ["parts", {"pattern": "(,)", "string": "a,b"}],
  ["given", {"a": 1}],
  ["given", 0],
  ["given", false]
]
EOF
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/open-policy-agent/opa/v1/compile"
	"github.com/open-policy-agent/opa/v1/rego"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	var bundle bytes.Buffer
	check(compile.New().WithTarget(compile.TargetWasm).WithEntrypoints("p/text", "p/read", "p/written", "p/parts", "p/given").
		WithPaths("p.rego").WithOutput(&bundle).Build(ctx))
	check(os.WriteFile("bundle.tar.gz", bundle.Bytes(), 0o600))
	text, err := os.ReadFile("cases.json")
	check(err)
	policy, err := os.ReadFile("p.rego")
	check(err)
	var cases [][2]json.RawMessage
	check(json.Unmarshal(text, &cases))
	for _, c := range cases {
		var rule string
		check(json.Unmarshal(c[0], &rule))
		decoder := json.NewDecoder(bytes.NewReader(c[1]))
		decoder.UseNumber()
		var input any
		check(decoder.Decode(&input))
		results, err := rego.New(rego.Query("x := data.p."+rule), rego.Module("p.rego", string(policy)), rego.Input(input)).Eval(ctx)
		answer := any("undefined")
		if err != nil {
			answer = "error"
		} else if len(results) > 0 {
			answer = results[0].Bindings["x"]
		}
		encoded, err := json.Marshal(answer)
		check(err)
		fmt.Println(string(encoded))
	}
}
EOF
cat >main.cjs <<'EOF'
const fs = require('fs')
const { loadPolicy } = require('@open-policy-agent/opa-wasm')

loadPolicy(fs.readFileSync('policy.wasm')).then((policy) => {
  policy.setData({})
  for (const [rule, input] of JSON.parse(fs.readFileSync('cases.json', 'utf8'))) {
    let answer
    try {
      const results = policy.evaluate(input, `p/${rule}`)
      answer = results.length > 0 ? results[0].result : 'undefined'
    } catch (e) {
      answer = 'error'
    }
    console.log(JSON.stringify(answer))
  }
})
EOF
go mod init finding 2>/dev/null
go get github.com/open-policy-agent/opa@v1.22.3 2>/dev/null
go run -mod=mod . >go.out
tar -xzf bundle.tar.gz /policy.wasm 2>/dev/null || tar -xzf bundle.tar.gz policy.wasm
node main.cjs >node.out
node -e '
  const lines = (name) => require("fs").readFileSync(name, "utf8").trim().split("\n")
  const go = lines("go.out"), node = lines("node.out")
  JSON.parse(require("fs").readFileSync("cases.json", "utf8")).forEach((c, i) => console.log(`${JSON.stringify(c)}: OPA ${go[i]}, Node ${node[i]}`))' | tee out
cat >want <<'EOF'
["text",{"format":"denied: %v","values":[{"a":1}]}]: OPA "denied: {\"a\": 1}", Node "denied: [object Object]"
["text",{"format":"denied: %v","values":[["a","b"]]}]: OPA "denied: [\"a\", \"b\"]", Node "denied: a,b"
["text",{"format":"%d replicas","values":[1.5]}]: OPA "%!d(float64=1.5) replicas", Node "1 replicas"
["text",{"format":"%q","values":["a"]}]: OPA "\"a\"", Node "error"
["read",{"yaml":"on: yes\nmode: 0400\n"}]: OPA {"mode":256,"on":"yes"}, Node {"mode":400,"on":"yes"}
["written",{"value":{"on":"yes","tag":"0400"}}]: OPA "\"on\": \"yes\"\ntag: \"0400\"\n", Node "on: yes\ntag: \"0400\"\n"
["parts",{"pattern":"(?i)x","string":"aXb"}]: OPA ["a","b"], Node "error"
["parts",{"pattern":"(,)","string":"a,b"}]: OPA ["a","b"], Node ["a",",","b"]
["given",{"a":1}]: OPA true, Node true
["given",0]: OPA true, Node "undefined"
["given",false]: OPA true, Node "undefined"
EOF
diff want out
