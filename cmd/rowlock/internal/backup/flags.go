// Package backup declares the flags of continuous backups and has a server write one.
package backup

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/sqlstore/archive/follow"
)

// Flags are the flags of continuous backups.
type Flags struct {
	keep, baseEvery string
}

func (o *Flags) AddTo(f *pflag.FlagSet, prefix string) {
	f.StringVar(&o.keep, prefix+"keep", "7d", "how far back everything in the folder of backups can be restored, such as 36h or 7d")
	f.StringVar(&o.baseEvery, prefix+"base-every", "24h", "how often everything is written to it anew, besides each commit")
}

func (o *Flags) Config(prefix string) (c follow.Config, err error) {
	for _, v := range []struct {
		flag, text string
		to         *time.Duration
	}{{"keep", o.keep, &c.Keep}, {"base-every", o.baseEvery, &c.BaseEvery}} {
		if *v.to, err = parseDuration(v.text); err != nil {
			return c, fmt.Errorf("--%s%s %q: want a duration above 0, such as 36h or 7d", prefix, v.flag, v.text)
		}
	}
	return c, nil
}

// parseDuration parses a duration, also one in days.
func parseDuration(text string) (d time.Duration, err error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, e := strconv.ParseInt(days, 10, 32)
		d, err = time.Duration(n)*24*time.Hour, e
		if n > 36500 {
			err = errors.New("too long")
		}
	} else {
		d, err = time.ParseDuration(text)
	}
	if err == nil && d <= 0 {
		err = errors.New("not above 0")
	}
	return d, err
}
