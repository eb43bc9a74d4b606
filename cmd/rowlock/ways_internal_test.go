package main

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
)

func TestWays(t *testing.T) {
	for _, tc := range []struct {
		args             []string
		ownership, merge bool // the standard way
		err              string
	}{
		{nil, false, false, ""},
		{[]string{"--apply-ownership=standard"}, true, false, ""},
		{[]string{"--strategic-merge=standard", "--apply-ownership=planned"}, false, true, ""},
		{[]string{"--strategic-merge=planned"}, false, false, `--strategic-merge "planned": use own or standard`},
		{[]string{"--apply-ownership="}, false, false, `--apply-ownership "": use planned or standard`},
	} {
		var o waysOptions
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.addTo(f)
		if err := f.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		var cfg server.Config
		got := ""
		if err := o.apply(&cfg); err != nil {
			got = err.Error()
		}
		if got != tc.err || cfg.StandardOwnership != tc.ownership || cfg.StandardMerge != tc.merge {
			t.Errorf("%q: %v %v %q", tc.args, cfg.StandardOwnership, cfg.StandardMerge, got)
		}
	}
}
