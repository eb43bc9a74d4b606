// Package schema knows what each kind looks like: the OpenAPI documents, and the
// typed schemas that field ownership is computed with.
package schema
