package serve

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/release"
)

// implementationOptions choose between this program's implementations and the libraries that they replace.
type implementationOptions struct{ ownership, json string }

func (o *implementationOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.ownership, "apply-ownership", ownership.Planned, "how to compute field ownership after a write, and to merge an apply of the same fields as before: planned, by comparing objects in memory if possible, or standard, always with the library, in case the first is suspected to be wrong")
	f.StringVar(&o.json, "json-codec", json.Fast.String(), "how to decode and encode objects as JSON: own, several times as fast, or standard, always with the standard packages, in case the first is suspected to be wrong")
}

// apply sets the choices in a server's configuration.
func (o *implementationOptions) apply(cfg *server.Config) (err error) {
	cfg.StandardOwnership, err = isStandard("apply-ownership", o.ownership, ownership.Planned, ownership.Standard)
	return err
}

// codec returns the chosen JSON codec.
func (o *implementationOptions) codec(v release.Version, log *slog.Logger) (json.Codec, error) {
	only, err := isStandard("json-codec", o.json, json.Fast.String(), json.Standard.String())
	return json.New(json.Settings{Standard: only, Log: log, View: v.View()}), err
}

// isStandard reports whether a flag chooses the standard implementation.
func isStandard(flag, value, own, standard string) (bool, error) {
	if value != own && value != standard {
		return false, fmt.Errorf("--%s %q: use %s or %s", flag, value, own, standard)
	}
	return value == standard, nil
}
