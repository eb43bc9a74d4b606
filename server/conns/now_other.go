//go:build !unix

package conns

// writeNow writes nothing: here, only a call that may wait can write.
func writeNow(uintptr, []byte) (int, error) { return 0, nil }
