//go:build !linux

package postgres

import (
	"errors"
	"net"
)

// checkPeer cannot tell who is at the other end of a socket here.
func checkPeer(*net.UnixConn, string) error {
	return errors.New("requirepeer: not known on this system")
}
