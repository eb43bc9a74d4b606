package wire

// CanAwait says that AwaitReadable waits.
func (s *Socket) CanAwait() bool { return rawConn(s.Conn) != nil }

// AwaitReadable waits until something can be read: bytes, the end, or an error, as that of a
// deadline. It needs little stack, where a read of package tls needs some deep frames. What package
// tls has read already is not waited for.
func (s *Socket) AwaitReadable() error {
	if raw := rawConn(s.Conn); raw != nil {
		return raw.Read(readable)
	}
	return nil
}
