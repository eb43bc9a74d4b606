#!/bin/sh
# github.com/google/gnostic-models v0.7.0, package openapiv3: the Protobuf form of OpenAPI 3 documents, which
# API servers send and kubectl and client-go ask for.
#
# Seen, with valid JSON documents of OpenAPI 3.0: a default that is an object or a list arrives empty; the default
# 12345678901234567890 arrives as 0, while its negative and 2^53+1 are rounded; an extension of a callback arrives as a
# path, too; a document with U+007F or U+0092 in a description, which JSON allows as they are, is refused as a whole.
# Expected: the same document in both forms, or an error that names the member.
# Who is hurt: tools that read schemas from discovery in Protobuf (generators of clients and forms) find no default, or 0,
# where the JSON form has one. U+0092 is the apostrophe of Windows text that was decoded as Latin-1: one such description
# in a definition leaves its whole group without a Protobuf document.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'GO'
package main

import (
	"fmt"
	"strings"

	openapi "github.com/google/gnostic-models/openapiv3"
)

const document = `{"openapi":"3.0.0","info":{"title":"t","version":"v"},"paths":{},"components":{%s}}`

func main() {
	for _, value := range []string{`{"replicas":2}`, `["a","b"]`, `12345678901234567890`, `-12345678901234567890`, `9007199254740993`, `7`, `1.5`, `"text"`} {
		doc, err := openapi.ParseDocument([]byte(fmt.Sprintf(document, `"schemas":{"S":{"default":`+value+`}}`)))
		if err != nil {
			fmt.Println("default", value, "refused")
			continue
		}
		d := doc.Components.Schemas.AdditionalProperties[0].Value.GetSchema().Default
		switch v := d.GetOneof().(type) {
		case nil:
			fmt.Println("default", value, "is empty")
		case *openapi.DefaultType_Number:
			fmt.Printf("default %s is %.1f\n", value, v.Number)
		case *openapi.DefaultType_String_:
			fmt.Printf("default %s is %q\n", value, v.String_)
		}
	}
	doc, err := openapi.ParseDocument([]byte(fmt.Sprintf(document, `"callbacks":{"c":{"x-owner":{"summary":"team"}}}`)))
	if err != nil {
		panic(err)
	}
	c := doc.Components.Callbacks.AdditionalProperties[0].Value.GetCallback()
	fmt.Println("callback with one extension:", len(c.Path), "paths,", len(c.SpecificationExtension), "extensions")
	for _, r := range []rune{0x7f, 0x92, 0xe9} {
		_, err := openapi.ParseDocument([]byte(fmt.Sprintf(document, fmt.Sprintf(`"schemas":{"S":{"description":"a%cb"}}`, r))))
		outcome := "accepted"
		if err != nil {
			outcome = "refused: " + strings.TrimSpace(err.Error())
		}
		fmt.Printf("description with U+%04X: %s\n", r, outcome)
	}
}
GO
go mod init finding 2>/dev/null
go get github.com/google/gnostic-models@v0.7.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'END'
default {"replicas":2} is empty
default ["a","b"] is empty
default 12345678901234567890 is 0.0
default -12345678901234567890 is -12345678901234567168.0
default 9007199254740993 is 9007199254740992.0
default 7 is 7.0
default 1.5 is 1.5
default "text" is "text"
callback with one extension: 1 paths, 1 extensions
description with U+007F: refused: yaml: control characters are not allowed
description with U+0092: refused: yaml: control characters are not allowed
description with U+00E9: accepted
END
diff want out
