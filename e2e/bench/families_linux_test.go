package main

import (
	"net"
	"os"
	"slices"
	"testing"
)

func TestBehind(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	listening, _ := sockets()
	if got := owners()[listening[port]]; got != os.Getpid() {
		t.Errorf("port %d is that of process %d, and not of %d", port, got, os.Getpid())
	}
	if got := behind(port); got != nil {
		t.Errorf("the bench itself is no server that is measured: %v", got)
	}
	if all := descendants(os.Getppid()); !slices.Contains(all, os.Getpid()) {
		t.Errorf("%v are the descendants of the parent of %d", all, os.Getpid())
	}
}
