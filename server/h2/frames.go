package h2

import "golang.org/x/net/http2"

// process handles a frame, which is valid only until it returns. An http2.StreamError resets a stream;
// any other error ends the connection.
func (c *conn) process(f http2.Frame) error {
	if !c.settled {
		if s, ok := f.(*http2.SettingsFrame); !ok || s.IsAck() {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.settled = true
		c.ready.Store(true)
	}
	switch f := f.(type) {
	case *http2.HeadersFrame:
		return c.headersFrame(f)
	case *http2.ContinuationFrame:
		return c.fragment(f.HeaderBlockFragment(), f.HeadersEnded())
	case *http2.DataFrame:
		return c.data(f)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.PingFrame:
		return c.ping(f)
	case *http2.WindowUpdateFrame:
		return c.windowUpdate(f.StreamID, int64(f.Increment))
	case *http2.RSTStreamFrame:
		return c.rstStream(f.StreamID)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.GoAwayFrame:
		c.goAway()
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

func (c *conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if f.NumSettings() > settingsMax {
		return http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	c.mu.Lock()
	defer c.sendAndUnlock()
	initial := c.initialWindow
	if err := f.ForeachSetting(c.settingLocked); err != nil {
		return err
	}
	if by := c.initialWindow - initial; by != 0 {
		for _, stream := range c.streams {
			if stream.sendWindow += by; stream.sendWindow > windowMax {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
			stream.signalLocked()
		}
	}
	return c.replyLocked(func(f *http2.Framer) { _ = f.WriteSettingsAck() })
}

func (c *conn) settingLocked(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingHeaderTableSize:
		c.tableSizeLocked(s.Val)
	case http2.SettingInitialWindowSize:
		c.windowReduced = c.windowReduced || int64(s.Val) < c.initialWindow
		c.initialWindow = int64(s.Val) // settings changes open streams by the difference
	}
	return nil
}

func (c *conn) ping(f *http2.PingFrame) error {
	if f.IsAck() {
		if f.Data == drainPing {
			c.drainAcknowledged()
		}
		return nil
	}
	data := f.Data
	c.mu.Lock()
	defer c.sendAndUnlock()
	return c.replyLocked(func(f *http2.Framer) { _ = f.WritePing(true, data) })
}

func (c *conn) windowUpdate(id uint32, n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == 0 {
		if c.sendWindow += n; c.sendWindow > windowMax {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.signalAllLocked()
		return nil
	}
	if c.idleStreamLocked(id) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if s := c.streams[id]; s != nil {
		if s.sendWindow += n; s.sendWindow > windowMax {
			return http2.StreamError{StreamID: id, Code: http2.ErrCodeFlowControl}
		}
		s.signalLocked()
	}
	return nil
}

// idleStreamLocked reports whether a stream has not been opened (RFC 9113, 5.1).
func (c *conn) idleStreamLocked(id uint32) bool { return id%2 == 0 || id > c.lastStream && !c.goneAway }

// rstStream ends a request that the client has cancelled.
func (c *conn) rstStream(id uint32) error {
	c.mu.Lock()
	if c.idleStreamLocked(id) {
		c.mu.Unlock()
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	s := c.streams[id]
	if s != nil {
		c.removeLocked(s, false)
	}
	c.mu.Unlock()
	if s != nil {
		s.ctx.cancel()
	}
	return nil
}

// resetStream resets a stream because of what the client sent.
func (c *conn) resetStream(id uint32, code http2.ErrCode) error {
	c.limiter.count(c)
	c.mu.Lock()
	s := c.streams[id]
	if s != nil {
		c.removeLocked(s, true)
	}
	err := c.replyLocked(func(f *http2.Framer) { _ = f.WriteRSTStream(id, code) })
	c.sendAndUnlock()
	if s != nil {
		s.ctx.cancel()
	}
	return err
}

// data receives a part of a body.
func (c *conn) data(f *http2.DataFrame) error {
	size, part := int64(f.Length), f.Data()
	if c.recvWindow -= size; c.recvWindow < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	c.consumed += size
	c.mu.Lock()
	defer c.sendAndUnlock()
	if c.idleStreamLocked(f.StreamID) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if n := c.consumed; n >= updateAfter || c.recvWindow < updateAfter {
		if err := c.replyLocked(func(f *http2.Framer) { _ = f.WriteWindowUpdate(0, uint32(n)) }); err != nil {
			return err
		}
		c.recvWindow += n
		c.consumed = 0
	}
	s := c.streams[f.StreamID]
	_, reset := c.closed.find(f.StreamID)
	switch {
	case s == nil && (c.refusing.Load() || reset):
		return nil // sent before the client knew
	case s == nil || s.halfClosed:
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if s.recvWindow -= size; s.recvWindow < 0 {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	if s.received += int64(len(part)); s.length >= 0 && (s.received > s.length || f.StreamEnded() && s.received != s.length) {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	}
	s.body.addLocked(part)
	s.consumed += size - int64(len(part)) // padding
	s.updateWindowLocked()
	if f.StreamEnded() {
		c.bodyEndedLocked(s)
	}
	return nil
}
