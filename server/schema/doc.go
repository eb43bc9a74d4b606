// Package schema describes the kinds: as OpenAPI documents, and as the shapes by which
// field ownership and patches are computed.
//
// Shapes come from the Go types of the kinds and a small table of merge markers.
// Documents combine a file of definitions with the texts of package descriptions, when a
// client first requests a document. The result is cached, compressed. The two files in data are generated from the sources of the API
// types, and hold facts but no sentence of them; the binary has them compressed. Nothing is read at start-up.
package schema

//go:generate go run ./gen data
