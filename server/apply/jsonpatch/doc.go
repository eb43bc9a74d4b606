// Package jsonpatch applies JSON Patches (RFC 6902) and JSON merge patches (RFC 7386) to
// documents.
//
//	Decode -> Patch.Apply -> run.add, remove, replace, move, copy, test
//	Merge  -> merger.merge        |
//	                              v
//	parse -> node (opened when something inside is asked for; lists in blocks) -> node.write
//
// It promises what gopkg.in/evanphx/json-patch.v4, which stock servers use, makes of the
// same document and patch, to the byte and with its errors, but in time that grows with
// the size of both and not with their depth or with the length of lists times the number
// of operations; an error where that library panics; and an end when the budget ends.
// docs/design/kinds.md says why. A fuzzer holds it to the library.
package jsonpatch
