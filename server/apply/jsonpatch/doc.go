// Package jsonpatch applies JSON Patches (RFC 6902) and JSON merge patches (RFC 7386) to
// documents.
//
//	Decode -> Patch.Apply -> run.add, remove, replace, move, copy, test
//	Merge  -> merger.merge        |
//	                              v
//	parse -> node (parsed when an operation reaches inside; lists in blocks) -> node.write
//
// It promises the results of gopkg.in/evanphx/json-patch.v4, which stock servers use, for the
// same document and patch, byte for byte and with its errors. Its time grows with
// the size of both, not with their depth or with the length of lists times the number
// of operations; where that library panics it returns an error; and it stops when the budget is spent.
// docs/design/kinds.md gives the reasons. A fuzzer compares it with the library.
package jsonpatch
