package postgres

import (
	"fmt"
	"net"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkPeer checks that the process at the other end of a socket runs as a user.
func checkPeer(conn *net.UnixConn, want string) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if asked != nil {
		return asked
	}
	u, err := user.LookupId(strconv.Itoa(int(cred.Uid)))
	if err != nil {
		return fmt.Errorf("requirepeer: %w", err)
	}
	if u.Username != want {
		return fmt.Errorf("requirepeer: the server runs as %s, not as %s", u.Username, want)
	}
	return nil
}

// endUnheard has the system end a connection whose peer has acknowledged nothing for some milliseconds.
func endUnheard(network string, c syscall.RawConn, milliseconds int) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	if e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, milliseconds)
	}); e != nil {
		return e
	}
	return err
}
