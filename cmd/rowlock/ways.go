package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/objects"
)

// waysOptions choose between quick code of our own and the libraries that it does the same
// as.
type waysOptions struct{ ownership, json, memory string }

func (o *waysOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.ownership, "apply-ownership", ownership.Planned, "how to compute who owns the fields of an object after a write, and to merge an apply of the same fields as before: planned, by comparing objects in memory where that is possible, or standard, always with the library, for the case that the first is suspected of being wrong")
	f.StringVar(&o.json, "json-codec", json.Own.String(), "how to read and write objects as JSON: own, several times as fast, or standard, always with the packages that are its measure, for the case that the first is suspected of being wrong")
	f.StringVar(&o.memory, "write-memory", string(objects.ReusedMemory), "memory of what writes read and store: reused (that of a value is used for the next once it is stored, and the body of a short request is taken as it lies) or standard (each value and each body has its own, which costs more collections of garbage), for the case that the first is suspected of being wrong")
}

// apply gives a server what the flags say.
func (o *waysOptions) apply(cfg *server.Config) (err error) {
	if cfg.StandardOwnership, err = standard("apply-ownership", o.ownership, ownership.Planned, ownership.Standard); err != nil {
		return err
	}
	cfg.Memory = objects.Memory(o.memory)
	_, err = standard("write-memory", o.memory, string(objects.ReusedMemory), string(objects.StandardMemory))
	return err
}

// codec reads and writes JSON as the flag says.
func (o *waysOptions) codec(log *slog.Logger) (json.Codec, error) {
	only, err := standard("json-codec", o.json, json.Own.String(), json.Standard.String())
	return json.New(json.Settings{Standard: only, Log: log}), err
}

// standard says whether a flag chooses the standard one of two ways.
func standard(flag, value, own, standard string) (bool, error) {
	if value != own && value != standard {
		return false, fmt.Errorf("--%s %q: use %s or %s", flag, value, own, standard)
	}
	return value == standard, nil
}
