// Package removed knows the API types below it: those that rowlock serves and that newer releases
// of Kubernetes' modules no longer have. A program that embeds rowlock may select such a release.
// Each type stands below this package under the import path that it had; package wire encodes them as
// Protobuf.
package removed

import "strings"

// root is where the import paths begin.
const root = "github.com/rowlock/rowlock/server/removed/"

// PackagePath is the import path that Kubernetes gave to a package below this one. Every other
// path stays as it is.
func PackagePath(path string) string { return strings.TrimPrefix(path, root) }
