package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/apply/ownership"
)

// waysOptions choose between quick code of our own and the libraries that it does the same
// as.
type waysOptions struct{ ownership, merge string }

func (o *waysOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.ownership, "apply-ownership", ownership.Planned, "how to compute who owns the fields of an object after a write: planned, by comparing objects in memory where that is possible, or standard, always with the library, for the case that the first is suspected of being wrong")
	f.StringVar(&o.merge, "strategic-merge", apply.Own, "how to apply strategic merge patches and merge patches: own, quicker, or standard, always with the library, which takes shorter lists")
}

// apply gives a server what the flags say.
func (o *waysOptions) apply(cfg *server.Config) error {
	for _, flag := range []struct {
		name, value string
		ways        []string // the standard one is the last
		standard    *bool
	}{
		{"apply-ownership", o.ownership, []string{ownership.Planned, ownership.Standard}, &cfg.StandardOwnership},
		{"strategic-merge", o.merge, []string{apply.Own, apply.Standard}, &cfg.StandardMerge},
	} {
		at := slices.Index(flag.ways, flag.value)
		if at < 0 {
			return fmt.Errorf("--%s %q: use %s", flag.name, flag.value, strings.Join(flag.ways, " or "))
		}
		*flag.standard = at == len(flag.ways)-1
	}
	return nil
}
