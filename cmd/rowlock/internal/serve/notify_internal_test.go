package serve

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
)

// TestNotify: a missing service manager does no harm; a running one receives the state.
func TestNotify(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	notify(log, notifyReady)
	path := filepath.Join(t.TempDir(), "socket")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	notify(log, notifyReady)
	buf := make([]byte, 32)
	if n, err := manager.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("%q %v", buf[:n], err)
	}
}
