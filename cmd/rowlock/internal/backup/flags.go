// Package backup declares the flags of continuous backups, and runs one inside a server.
package backup

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive/follow"
)

// Flags are the flags of continuous backups.
type Flags struct {
	keep, baseEvery string
}

func (o *Flags) AddTo(f *pflag.FlagSet, prefix string) {
	f.StringVar(&o.keep, prefix+"keep", "7d", "how far back everything in the folder of backups can be restored, such as 36h or 7d")
	f.StringVar(&o.baseEvery, prefix+"base-every", "24h", "how often a base with everything is written to it, in addition to each commit")
}

func (o *Flags) Config(prefix string) (c follow.Config, err error) {
	for _, v := range []struct {
		flag, text string
		to         *time.Duration
	}{{"keep", o.keep, &c.Keep}, {"base-every", o.baseEvery, &c.BaseEvery}} {
		if *v.to, err = sqlstore.ParseDuration(v.text); err != nil {
			return c, fmt.Errorf("--%s%s %q: want a duration above 0, such as 36h or 7d", prefix, v.flag, v.text)
		}
	}
	return c, nil
}
