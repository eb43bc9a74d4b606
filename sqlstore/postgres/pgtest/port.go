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

// FreePort finds a TCP port of 127.0.0.1 that nobody uses now. Until it is used, or
// while its server is away, nobody else gets it by chance: it is none of those that
// systems give to connections and to listeners that ask for any (from 32768 on), a
// process is given it once, and as long as it runs, so is no other one: it keeps the UDP
// port of that number, which nobody else wants.
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
