#!/bin/sh
# protobufjs 7.5.4 (npm) with the message IntOrString of Kubernetes' own .proto file, read by k8s.io/api and k8s.io/apimachinery v0.36.2 (application/vnd.kubernetes.protobuf).
#
# Seen: an IntOrString has three fields, type, intVal and strVal, and type decides alone. A client that sets strVal only, as the JSON form suggests, sends the
# type's default, which is "integer": maxUnavailable: "25%" is read as 0, and so is a targetPort "http", without an error.
# Expected: the text, or an error for an integer that has a text; a field that another one silently disables is nowhere else in the API.
# Who is hurt: clients in other languages that move from JSON to Protobuf for speed: a disruption budget of "25%" lets nobody go, and a Service's port leads to 0
# or is refused for a field that the caller has not set.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . protobufjs@7.5.4 >/dev/null
cat >main.mjs <<'END'
import protobuf from 'protobufjs'

const { root } = protobuf.parse(`
  syntax = "proto2";
  message IntOrString { optional int64 type = 1; optional int32 intVal = 2; optional string strVal = 3; }
  message LabelSelector { map<string, string> matchLabels = 1; }
  message PodDisruptionBudgetSpec { optional IntOrString minAvailable = 1; optional LabelSelector selector = 2; optional IntOrString maxUnavailable = 3; }`)
const Spec = root.lookupType('PodDisruptionBudgetSpec')
for (const maxUnavailable of [{ strVal: '25%' }, { type: 1, strVal: '25%' }, { intVal: 3 }])
  console.log(Buffer.from(Spec.encode(Spec.fromObject({ maxUnavailable })).finish()).toString('hex'), JSON.stringify(maxUnavailable))
END
cat >main.go <<'END'
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		text, sent, _ := strings.Cut(lines.Text(), " ")
		data, err := hex.DecodeString(text)
		if err != nil {
			panic(err)
		}
		var spec, again policyv1.PodDisruptionBudgetSpec
		if err := spec.Unmarshal(data); err != nil {
			panic(err)
		}
		body, err := json.Marshal(spec)
		if err != nil {
			panic(err)
		}
		written, err := spec.Marshal()
		if err != nil {
			panic(err)
		}
		if err := again.Unmarshal(written); err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s, written and read again: %+v\n", sent, body, *again.MaxUnavailable)
	}
}
END
go mod init finding 2>/dev/null
go get k8s.io/api@v0.36.2 2>/dev/null
node main.mjs | go run -mod=mod . | tee out
cat >want <<'END'
{"strVal":"25%"}: {"maxUnavailable":0}, written and read again: {Type:0 IntVal:0 StrVal:25%}
{"type":1,"strVal":"25%"}: {"maxUnavailable":"25%"}, written and read again: {Type:1 IntVal:0 StrVal:25%}
{"intVal":3}: {"maxUnavailable":3}, written and read again: {Type:0 IntVal:3 StrVal:}
END
diff want out
