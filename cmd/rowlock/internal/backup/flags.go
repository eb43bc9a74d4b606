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
	f.StringVar(&o.keep, prefix+"keep", "7d", "retention of the folder of backups, such as 36h or 7d: any time in it can be restored")
	f.StringVar(&o.baseEvery, prefix+"base-every", "24h", "interval of full backups in it, in addition to each commit")
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
