package serve

import (
	"testing"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/release"
)

func TestImplementations(t *testing.T) {
	for _, tc := range []struct {
		args            []string
		ownership, json bool // the standard implementation
		err             string
	}{
		{nil, false, false, ""},
		{[]string{"--apply-ownership=standard"}, true, false, ""},
		{[]string{"--apply-ownership=planned"}, false, false, ""},
		{[]string{"--json-codec=standard"}, false, true, ""},
		{[]string{"--json-codec=fast"}, false, false, `--json-codec "fast": use own or standard`},
		{[]string{"--apply-ownership="}, false, false, `--apply-ownership "": use planned or standard`},
	} {
		var o implementationOptions
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.addTo(f)
		if err := f.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		var cfg server.Config
		got := ""
		codec, err := o.codec(release.Default, nil)
		if err == nil {
			err = o.apply(&cfg)
		}
		if err != nil {
			got = err.Error()
		} else if codec.DecodeClean([]byte(`{}`), &metav1.Status{}) == tc.json {
			t.Errorf("%q: the other codec", tc.args)
		}
		if got != tc.err || cfg.StandardOwnership != tc.ownership {
			t.Errorf("%q: %v %q", tc.args, cfg.StandardOwnership, got)
		}
	}
}
