//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

var given struct {
	mu    sync.Mutex
	ports map[int]net.PacketConn // by which other processes see that it is given
}

// FreePort finds an unused TCP port of 127.0.0.1. No other program gets it by chance, before it is used or
// while its server is stopped: it is outside of the range that systems assign to connections and listeners
// (from 32768 on), a process gets it only once, and other processes do not get it while this one runs,
// because it holds the UDP port of that number.
func FreePort() (int, error) {
	given.mu.Lock()
	defer given.mu.Unlock()
	for range 1000 {
		port := 10_000 + rand.IntN(22_000)
		if given.ports[port] != nil {
			continue
		}
		mark, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // given to another process
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			mark.Close()
			continue // in use
		}
		l.Close()
		if given.ports == nil {
			given.ports = map[int]net.PacketConn{}
		}
		given.ports[port] = mark
		return port, nil
	}
	return 0, errors.New("no TCP port is free")
}
