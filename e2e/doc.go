// Package e2e drives the built binary from outside, with raw HTTP, client-go and
// kubectl, on SQLite and on PostgreSQL.
package e2e
