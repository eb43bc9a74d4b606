package wire

// CanAwait reports whether AwaitReadable can wait.
func (s *Socket) CanAwait() bool { return rawConn(s.Conn) != nil }

// AwaitReadable waits until the socket is readable: bytes, the end, or an error such as that of a
// deadline. It needs little stack, unlike a read of package tls. It does not know what package tls has
// read already.
func (s *Socket) AwaitReadable() error {
	if raw := rawConn(s.Conn); raw != nil {
		return raw.Read(readable)
	}
	return nil
}
