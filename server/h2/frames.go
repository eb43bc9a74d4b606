package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2"
)

// process does what a frame asks for. The frame is not kept. A http2.StreamError resets a stream,
// any other error ends the connection.
func (c *conn) process(f http2.Frame) error {
	if !c.greeted {
		if s, ok := f.(*http2.SettingsFrame); !ok || s.IsAck() {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		c.greeted = true
		c.awake.Store(1)
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
		return c.wasReset(f.StreamID)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
		}
	case *http2.GoAwayFrame:
		c.mu.Lock()
		c.goAwayLocked(http2.ErrCodeNo)
		c.sendAndUnlock()
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
	initial := c.initial
	if err := f.ForeachSetting(func(s http2.Setting) error { return c.settingLocked(s) }); err != nil {
		return err
	}
	if by := c.initial - initial; by != 0 {
		for _, stream := range c.streams {
			if stream.window += by; stream.window > windowMax {
				return http2.ConnectionError(http2.ErrCodeFlowControl)
			}
			stream.signalLocked()
		}
	}
	return c.controlLocked(func(f *http2.Framer) { _ = f.WriteSettingsAck() }) // a buffer takes everything
}

func (c *conn) settingLocked(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingHeaderTableSize:
		c.tableSizeLocked(s.Val)
	case http2.SettingInitialWindowSize:
		c.windowReduced = c.windowReduced || int64(s.Val) < c.initial
		c.initial = int64(s.Val) // of open streams as well, when the whole frame has been read
	}
	return nil
}

func (c *conn) ping(f *http2.PingFrame) error {
	if f.IsAck() {
		if f.Data == partingMark {
			c.parted()
		}
		return nil
	}
	data := f.Data
	c.mu.Lock()
	defer c.sendAndUnlock()
	return c.controlLocked(func(f *http2.Framer) { _ = f.WritePing(true, data) }) // a buffer takes everything
}

func (c *conn) windowUpdate(id uint32, n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == 0 {
		if c.window += n; c.window > windowMax {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		for _, s := range c.streams {
			s.signalLocked()
		}
		return nil
	}
	if c.idleStreamLocked(id) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	s := c.streams[id]
	if s == nil {
		return nil
	}
	if s.window += n; s.window > windowMax {
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeFlowControl}
	}
	s.signalLocked()
	return nil
}

// idleStreamLocked says that nobody has begun a stream yet.
func (c *conn) idleStreamLocked(id uint32) bool { return id%2 == 0 || id > c.newest && !c.goneAway }

// wasReset ends a request that the client does not want answered any more.
func (c *conn) wasReset(id uint32) error {
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

// resetStream refuses what the client has sent on a stream, and ends it.
func (c *conn) resetStream(id uint32, code http2.ErrCode) error {
	c.limiter.count(c)
	c.mu.Lock()
	s := c.streams[id]
	if s != nil {
		c.removeLocked(s, true)
	}
	err := c.controlLocked(func(f *http2.Framer) { _ = f.WriteRSTStream(id, code) }) // a buffer takes everything
	c.sendAndUnlock()
	if s != nil {
		s.ctx.cancel()
	}
	return err
}

// data takes a part of a body.
func (c *conn) data(f *http2.DataFrame) error {
	size, part := int64(f.Length), f.Data()
	if c.recv -= size; c.recv < 0 {
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	c.taken += size
	c.mu.Lock()
	defer c.sendAndUnlock()
	if c.idleStreamLocked(f.StreamID) {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if c.taken >= giveBack || c.recv < giveBack {
		n := c.taken
		if err := c.controlLocked(func(f *http2.Framer) { _ = f.WriteWindowUpdate(0, uint32(n)) }); err != nil {
			return err
		}
		c.recv += n
		c.taken = 0
	}
	s := c.streams[f.StreamID]
	_, reset := c.closed.find(f.StreamID)
	switch {
	case s == nil && (c.ignores.Load() || reset):
		return nil // it was on its way
	case s == nil || s.sent:
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if s.room -= size; s.room < 0 {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	if s.came += int64(len(part)); s.length >= 0 && (s.came > s.length || f.StreamEnded() && s.came != s.length) {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeProtocol}
	}
	s.body.addLocked(part)
	s.owed += size - int64(len(part))
	s.giveBackLocked()
	if f.StreamEnded() {
		c.bodyEndedLocked(s)
	}
	return nil
}

// bodyEndedLocked is called when nothing of a request is to come any more.
func (c *conn) bodyEndedLocked(s *Stream) {
	s.sent = true
	s.body.endLocked(nil)
	if s.awaits {
		c.awaited -= int(s.length)
		s.awaits = false
		c.runLocked(s)
	}
}

// closedStreams remembers streams that have ended not long ago: what a client may still have sent
// of them is forgiven, or told apart from what it may never send.
type closedStreams struct {
	ids  [32]uint32 // with the highest bit set where this side has reset the stream
	next uint8
}

const resetBit = 1 << 31

func (r *closedStreams) add(id uint32, reset bool) {
	if reset {
		id |= resetBit
	}
	r.ids[r.next%uint8(len(r.ids))] = id
	r.next++
}

// find says whether a stream has ended not long ago, and whether this side has reset it.
func (r *closedStreams) find(id uint32) (known, reset bool) {
	for _, one := range r.ids {
		if one&^resetBit == id {
			return true, one != id
		}
	}
	return false, false
}

// appendFrame appends the head of a frame.
func appendFrame(out []byte, size int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	out = append(out, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(out, id)
}
