package main

import (
	_ "github.com/anishathalye/porcupine"
	_ "github.com/fxamacker/cbor/v2"
	_ "github.com/google/cel-go/cel"
	_ "go.uber.org/goleak"
	_ "k8s.io/apiserver/pkg/cel/library"
)
