package conns

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// held is a connection whose writes leave together.
type held struct {
	net.Conn
	hold bool
	kept bytes.Buffer
}

func (h *held) Write(p []byte) (int, error) {
	if h.hold {
		return h.kept.Write(p)
	}
	return h.Conn.Write(p)
}

// TestAwait: what package tls has read already is not waited for, nor is a part of a record
// taken for one; a deadline ends it, and the connection can be read afterwards.
func TestAwait(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	raw, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := plain.Accept()
	if err != nil {
		t.Fatal(err)
	}
	with := httptest.NewUnstartedServer(nil)
	with.StartTLS()
	certificates := with.TLS.Certificates
	with.Close()
	below := newRecordConn(accepted, 0)
	far, near := &held{Conn: raw}, tls.Server(below, &tls.Config{Certificates: certificates})
	client := tls.Client(far, &tls.Config{InsecureSkipVerify: true})
	defer client.Close()
	defer near.Close()
	shaken := make(chan error, 1)
	go func() { shaken <- client.Handshake() }()
	if err := errors.Join(near.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}

	far.hold = true
	for _, word := range []string{"one", "two", "three"} {
		if _, err := client.Write([]byte(word)); err != nil {
			t.Fatal(err)
		}
	}
	records := far.kept.Bytes()
	cut := len(records) - 2
	if _, err := raw.Write(records[:cut]); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	if n, err := near.Read(buf); err != nil || string(buf[:n]) != "one" {
		t.Fatalf("%q %v", buf[:n], err)
	}
	var got bytes.Buffer
	calls := 0
	read := func(until int) func() (bool, error) {
		return func() (bool, error) {
			calls++
			for {
				n, err := near.Read(buf)
				if got.Write(buf[:n]); err != nil || got.Len() >= until {
					return err == nil, err
				}
			}
		}
	}
	if err := below.await(read(len("two"))); err != nil || got.String() != "two" {
		t.Errorf("%q %v", &got, err)
	}
	rest := bytes.Clone(records[cut:])
	time.AfterFunc(20*time.Millisecond, func() { _, _ = raw.Write(rest) })
	if err := below.await(read(len("twothree"))); err != nil || got.String() != "twothree" {
		t.Errorf("%q %v", &got, err)
	}
	if calls > 4 {
		t.Errorf("it was read %d times", calls)
	}
	_ = near.SetReadDeadline(time.Now().Add(time.Millisecond))
	if err := below.await(read(100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v", err)
	}
	_ = near.SetReadDeadline(time.Time{})
	far.hold = false
	if _, err := client.Write([]byte("four")); err != nil {
		t.Fatal(err)
	}
	if n, err := near.Read(buf); err != nil || string(buf[:n]) != "four" {
		t.Errorf("%q %v", buf[:n], err)
	}
}
