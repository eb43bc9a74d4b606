// Package schema knows what each kind looks like: the OpenAPI documents, and the
// shapes that field ownership and patches are computed with.
//
// Shapes come from the Go types of the kinds and a small table of merge markers;
// documents come from a compressed file of definitions that is opened only when a
// client asks. Both files are generated from the sources of the API types. Nothing
// is read at start-up.
package schema

//go:generate go run ./gen data
