package postgres

import (
	"fmt"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// checkPeer says whether the process at the other end of a socket runs as a user.
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
