package conns

import (
	"errors"
	"net"
)

// await calls read whenever the client has sent something, until it says that it is done, or fails.
// read gets as far as it can without waiting, in a goroutine of its own: it needs some deep
// frames of package tls, which the stack of who waits here, perhaps for hours, is not grown for.
// An error of a deadline that has passed is returned as any other.
func (r *recordConn) await(read func() (done bool, err error)) error {
	raw := rawConn(r.Conn)
	if raw == nil {
		_, err := read()
		return err
	}
	for {
		done, err := r.attempt(read)
		if done || !errors.Is(err, errLater) {
			return err
		}
		if err := raw.Read(readable); err != nil {
			return err
		}
		r.reads = 1
	}
}

// attempt calls read with what has been read, and with one more read of the connection if await has
// seen that there is something.
func (r *recordConn) attempt(read func() (done bool, err error)) (done bool, err error) {
	ended := make(chan any, 1)
	r.limited = true
	go func() {
		defer func() { ended <- recover() }()
		done, err = read()
	}()
	p := <-ended
	r.limited, r.reads = false, 0
	if p != nil {
		panic(p)
	}
	return done, err
}

// Read is called by package tls. Where it must not wait it gets errLater, after which it goes on.
func (r *recordConn) Read(p []byte) (int, error) {
	if r.limited {
		if r.reads == 0 {
			return 0, errLater
		}
		r.reads--
	}
	return r.Conn.Read(p)
}

// errLater says that nothing has come so far.
var errLater net.Error = later{}

type later struct{}

func (later) Error() string   { return "nothing to read now" }
func (later) Timeout() bool   { return true }
func (later) Temporary() bool { return true }
