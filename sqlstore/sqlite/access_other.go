//go:build !unix

package sqlite

// denied returns the permission that this process lacks; here nothing, as the error of the system has to suffice.
func denied(string) string { return "" }
