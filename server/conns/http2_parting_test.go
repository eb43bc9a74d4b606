package conns_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/conns"
)

// TestParting: a client that is to leave is asked behind that whether it knows, and has parted
// when it answered that, and not by an answer to anything else.
func TestParting(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	idle := make(chan *conns.HTTP2Conn, 8)
	d, _, _ := measured(conns.DeliveryConfig{})
	hs := &http.Server{
		ConnContext: conns.ConnContext, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate(t)}},
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		ConnState: func(c net.Conn, state http.ConnState) {
			if h2 := conns.HTTP2Of(c); h2 != nil && state == http.StateIdle {
				idle <- h2
			}
		},
	}
	if err := conns.ServeHTTP2(hs, &http2.Server{MaxConcurrentStreams: 100}, d, conns.Short{}); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(tls.NewListener(conns.Listener{Listener: plain}, hs.TLSConfig)) }()
	defer func() {
		hs.Close()
		<-served
	}()
	client, err := tls.Dial("tcp", plain.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(client, client)
	if _, err := io.WriteString(client, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	c := <-idle
	c.Farewell()
	stopping, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- hs.Shutdown(stopping) }()
	defer func() {
		cancel()
		<-stopped
	}()
	var asked [8]byte
	for told := false; ; {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := frame.(*http2.GoAwayFrame); ok {
			told = true
		}
		if ping, ok := frame.(*http2.PingFrame); ok {
			if !told {
				t.Error("the client is asked before it is told")
			}
			asked = ping.Data
			break
		}
	}
	// The server has read the wrong answer when it answers the question behind it.
	if err := f.WritePing(true, [8]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := f.WritePing(false, [8]byte{2}); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() {
			break
		}
	}
	if c.Parted(0) {
		t.Error("the client has parted before it said so")
	}
	if err := f.WritePing(true, asked); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); !c.Parted(0); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the client has not parted")
		}
	}
	if c.Parted(time.Hour) {
		t.Error("the client has parted for long")
	}
}
