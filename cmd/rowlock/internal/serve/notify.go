package serve

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// The states that the server sends to a service manager, on the socket that NOTIFY_SOCKET names; see
// sd_notify(3). Without that variable it sends nothing.
const (
	notifyReady    = daemon.SdNotifyReady
	notifyStopping = daemon.SdNotifyStopping
)

func notify(log *slog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("cannot notify the service manager", "state", state, "error", err)
	}
}
