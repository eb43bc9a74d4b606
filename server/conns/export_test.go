package conns

import "time"

// SetTokenPatience makes a Delivery wait for less than tokenPatience.
func (d *Delivery) SetTokenPatience(patience time.Duration) { d.tokenPatience = patience }

// SetPatience makes a client that has no window for a token go sooner.
func (d *Delivery) SetPatience(patience time.Duration) { d.patience = patience }

// SetRestAfter lets connections rest sooner.
func (d *Delivery) SetRestAfter(after time.Duration) { d.restAfter = after }

// Asks says that somebody will look whether a connection can rest.
func (c *HTTP2Conn) Asks() bool {
	c.outlivers.mu.Lock()
	defer c.outlivers.mu.Unlock()
	return c.outlivers.timer != nil
}

// Stays says that a handler stays for those that have returned.
func (c *HTTP2Conn) Stays() bool {
	c.outlivers.mu.Lock()
	defer c.outlivers.mu.Unlock()
	return c.outlivers.stays != nil
}

// Rests says that package http2 has left a connection.
func (c *HTTP2Conn) Rests() bool { return c.rest.alone.Load() }

// NeverRests says that the connection stays with package http2.
func (c *HTTP2Conn) NeverRests() bool { return c.rest.never }
