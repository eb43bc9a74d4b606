#!/bin/sh
# github.com/google/go-jsonnet v0.22.0, std.manifestYamlDoc and std.parseYaml, read with sigs.k8s.io/yaml v1.6.0, which kubectl uses.
#
# Seen: a text that ends with a newline is written as a block without indicators: if its first line begins with a blank, the YAML cannot be read; of several newlines at its
# end one is left, and of a text of newlines alone none. std.parseYaml of a document that begins with `---` is a list with one member.
# Expected: the indicators `|2` and `|+`, or quotes as for a text without a newline at its end; and one document as one value, with or without its marker.
# Who is hurt: ConfigMaps with files from elsewhere (Tanka, mixins): an indented banner makes the whole manifest invalid, a file whose hash or size is checked is another
# one; and `parseYaml(importstr ...)` of a file works until somebody puts `---` at its head, and then "field does not exist".
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/google/go-jsonnet"
	"sigs.k8s.io/yaml"
)

func evaluate(snippet string) (value any) {
	text, err := jsonnet.MakeVM().EvaluateAnonymousSnippet("snippet", snippet)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(err)
	}
	return value
}

func main() {
	for _, text := range []string{"one\ntwo\n", " one\ntwo\n", "one\n\n\n", "\n", " one\ntwo"} {
		written := evaluate(fmt.Sprintf("std.manifestYamlDoc({text: %q})", text)).(string) + "\n"
		var read struct{ Text string }
		err := yaml.Unmarshal([]byte(written), &read)
		fmt.Printf("%q: %q, read: %q, the same: %v, error: %v\n", text, written, read.Text, read.Text == text, err)
	}
	for _, text := range []string{"a: 1\n", "---\na: 1\n"} {
		body, err := json.Marshal(evaluate(fmt.Sprintf("std.parseYaml(%q)", text)))
		if err != nil {
			panic(err)
		}
		fmt.Printf("parseYaml(%q): %s\n", text, body)
	}
}
END
go mod init finding 2>/dev/null
go get github.com/google/go-jsonnet@v0.22.0 sigs.k8s.io/yaml@v1.6.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'END'
"one\ntwo\n": "\"text\": |\n  one\n  two\n", read: "one\ntwo\n", the same: true, error: <nil>
" one\ntwo\n": "\"text\": |\n   one\n  two\n", read: "", the same: false, error: error converting YAML to JSON: yaml: line 2: did not find expected key
"one\n\n\n": "\"text\": |\n  one\n  \n  \n", read: "one\n", the same: false, error: <nil>
"\n": "\"text\": |\n  \n", read: "", the same: false, error: <nil>
" one\ntwo": "\"text\": \" one\\ntwo\"\n", read: " one\ntwo", the same: true, error: <nil>
parseYaml("a: 1\n"): {"a":1}
parseYaml("---\na: 1\n"): [{"a":1}]
END
diff want out
