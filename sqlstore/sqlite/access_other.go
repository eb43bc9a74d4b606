//go:build !unix

package sqlite

// denied says which permission this process lacks; here the error of the system has to do.
func denied(string) string { return "" }
