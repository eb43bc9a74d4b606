package conns

import (
	"sync/atomic"
	"time"
)

// parting is how a client that has nothing under way is let go as soon as it can be. It
// is told to go away, and a ping behind that asks it whether it has read so: what it sends
// before it answers has come before the answer, and afterwards it sends no more requests.
type parting struct {
	wanted atomic.Bool
	asked  atomic.Bool
	heard  atomic.Int64 // when it answered, in Unix nanoseconds
}

// partingMark is what the ping says, and its answer.
const partingMark = "rowlock."

// Farewell has the client asked whether it knows that it is to go away, once package http2
// has told it so.
func (c *HTTP2Conn) Farewell() {
	c.parting.wanted.Store(true)
	c.flow.wakeResting() // package http2 tells it so
	c.askParting()
	c.sendQueued(false)
}

// askParting queues the question if it is time for it, which is once.
func (c *HTTP2Conn) askParting() {
	if c.parting.wanted.Load() && c.flow.goneAway.Load() && c.parting.asked.CompareAndSwap(false, true) {
		c.frames.addPing()
	}
}

// Parted says that the client has known for so long that it is to go away, and that
// everything for it is on its way.
func (c *HTTP2Conn) Parted(since time.Duration) bool {
	heard := c.parting.heard.Load()
	return heard != 0 && time.Now().UnixNano()-heard >= int64(since) && c.idle()
}

// answered is told of the answers to pings.
func (p *parting) answered(payload []byte) {
	if string(payload) == partingMark && p.asked.Load() {
		p.heard.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// addPong adds the answer to a ping.
func (q *frameQueue) addPong(said []byte) {
	q.append(func(out []byte) []byte {
		out = append(out, 0, 0, byte(len(said)), pingFrame, ack, 0, 0, 0, 0)
		return append(out, said...)
	})
}

// addPing adds the question to the frames that are to go out.
func (q *frameQueue) addPing() {
	q.append(func(out []byte) []byte {
		out = append(out, 0, 0, byte(len(partingMark)), pingFrame, 0, 0, 0, 0, 0)
		return append(out, partingMark...)
	})
}
