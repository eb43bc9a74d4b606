// Package schema knows what each kind looks like: the OpenAPI documents, and the
// shapes that field ownership and patches are computed with.
//
// Shapes come from the Go types of the kinds and a small table of merge markers.
// Documents come from a file of definitions and from what package descriptions finds to
// say of them. Both are put together when a client first asks for a document, and then
// kept compressed. The two files in data are generated from the sources of the API
// types, and hold facts but no sentence of them; the binary has them compressed. Nothing is read at start-up.
package schema

//go:generate go run ./gen data
