// Package removed knows the API types below it: those that rowlock serves and that newer releases of
// Kubernetes' modules no longer have. A program that embeds rowlock may select such a release. Each
// type is below this package under its former import path; package codecs/protobuf/tagged encodes them
// as Protobuf.
package removed

import "strings"

// root is the prefix of the import paths.
const root = "github.com/rowlock/rowlock/server/removed/"

// PackagePath is the import path that Kubernetes gave to a package below this one. Every other
// path stays as it is.
func PackagePath(path string) string { return strings.TrimPrefix(path, root) }

// described are packages below this one whose types have the descriptions of another package's.
var described = map[string]string{root + "k8s.io/api/resource/v1alpha3": "k8s.io/api/resource/v1beta1"}

// Describing is the package that describes the types of a package: another one only for some of those below this one.
func Describing(path string) string {
	if by, ok := described[path]; ok {
		return by
	}
	return PackagePath(path)
}
