#!/bin/sh
# @opentelemetry/otlp-transformer 0.223.1 with sdk-trace-base 2.12.1 (npm), the exporters of OpenTelemetry for Node;
# go.opentelemetry.io/collector/pdata v1.71.0, with which the collector reads them.
#
# Seen: one span whose attribute is NaN, Infinity or a number above 2^63 makes the collector refuse the whole request, if it
# is sent as JSON: NaN and Infinity are written as null, and 1e20 as an intValue, which has 64 bits. As
# Protobuf the same spans are read. And one attribute is an integer or a double by its value: 1 is Int, 1.5 Double.
# Expected: the same data in both forms; JSON of Protobuf writes "NaN" and "Infinity", and 1e20 is a doubleValue.
# Who is hurt: services in Node and pages with exporter-trace-otlp-http, which sends JSON: a ratio of 0 by 0, or a limit
# that is Infinity, on one span, and all spans of its batch are lost; the request is invalid, so it is not tried again.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
npm install --silent --no-save --prefix . @opentelemetry/otlp-transformer@0.223.1 @opentelemetry/sdk-trace-base@2.12.1 >/dev/null
cat >main.cjs <<'EOF'
const { writeFileSync } = require('node:fs')
const { JsonTraceSerializer, ProtobufTraceSerializer } = require('@opentelemetry/otlp-transformer')
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base')

for (const value of [1, 1.5, 2 ** 53 + 2, 1e20, NaN, Infinity]) {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  provider.getTracer('a').startSpan('b', { attributes: { value } }).end()
  const spans = exporter.getFinishedSpans()
  writeFileSync(`${value}.json`, JsonTraceSerializer.serializeRequest(spans))
  writeFileSync(`${value}.bin`, ProtobufTraceSerializer.serializeRequest(spans))
}
EOF
node main.cjs
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

func main() {
	show := func(traces ptrace.Traces, err error) string {
		if err != nil {
			text, _, _ := strings.Cut(err.Error(), ", error found")
			return "an error (" + text + ")"
		}
		span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		value, _ := span.Attributes().Get("value")
		return fmt.Sprintf("%s %s", value.Type(), value.AsString())
	}
	for _, name := range []string{"1", "1.5", "9007199254740994", "100000000000000000000", "NaN", "Infinity"} {
		inJSON, err := os.ReadFile(name + ".json")
		if err != nil {
			panic(err)
		}
		inProtobuf, err := os.ReadFile(name + ".bin")
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: from JSON %s, from Protobuf %s\n", name, show((&ptrace.JSONUnmarshaler{}).UnmarshalTraces(inJSON)),
			show((&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(inProtobuf)))
	}
}
EOF
go mod init finding 2>/dev/null
go get go.opentelemetry.io/collector/pdata@v1.71.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
1: from JSON Int 1, from Protobuf Int 1
1.5: from JSON Double 1.5, from Protobuf Double 1.5
9007199254740994: from JSON Int 9007199254740994, from Protobuf Int 9007199254740994
100000000000000000000: from JSON an error (readUint64: overflow), from Protobuf Double 100000000000000000000
NaN: from JSON an error (ReadUint64: unsupported value type), from Protobuf Double NaN
Infinity: from JSON an error (ReadUint64: unsupported value type), from Protobuf Double Infinity
EOF
diff want out
