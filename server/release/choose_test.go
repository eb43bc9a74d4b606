package release_test

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/release"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct{ emulated, minCompatibility, want string }{
		{"", "", "1.32 1.31"},
		{"1.32", "", "1.32 1.31"},
		{"v1.32.0", "", "1.32 1.31"},
		{"kube=1.32", "kube=1.32", "1.32 1.32"},
		{" kube = 1.32", "1.31", "1.32 1.31"},
		{"1.33", "", "1.33 1.33"},
		{"1.34", "1.34", "1.34 1.34"},
		{"kube=v1.35.0", "", "1.35 1.34"},
		{"1.36", "kube=1.33", "1.36 1.33"},
		{"1.35", "1.36", "minCompatibilityVersion version 1.36 is not between [1.32, 1.35]"},
		{"", "1.30", "minCompatibilityVersion version 1.30 is not between [1.31, 1.32]"},
		{"1.32", "1.33", "minCompatibilityVersion version 1.33 is not between [1.31, 1.32]"},
		{"1.32.6", "", "--emulated-version: patch version not allowed, got: kube=1.32.6"},
		{"etcd=3.5", "", "--emulated-version: component not registered: etcd"},
		{"1.32,kube=1.33", "", "--emulated-version: duplicate version flag, kube=1.32 and kube=1.33"},
		{"", "wardle=1.2", "--min-compatibility-version: component not registered: wardle"},
		{"2.32", "", "--emulated-version: release 2.32: want one of 1.32, 1.33, 1.34, 1.35, 1.36"},
		{"new", "", `--emulated-version: could not parse "new" as version`},
		{"1.31", "", "emulation version 1.31 is not between [1.32, 1.36.0]"},
		{"1.37", "", "emulation version 1.37 is not between [1.32, 1.36.0]"},
	} {
		list := func(text string) []string {
			if text == "" {
				return nil
			}
			return strings.Split(text, ",")
		}
		chosen, err := release.Choose(list(c.emulated), list(c.minCompatibility))
		got := chosen.String() + " " + chosen.MinCompatibility.String()
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q with %q: %s, want %s", c.emulated, c.minCompatibility, got, c.want)
		}
	}
}

func TestInfo(t *testing.T) {
	info := release.Defaults().Info("rowlock.v9")
	if info.Major != "1" || info.Minor != "32" || info.GitVersion != "v1.32.13+rowlock.v9" {
		t.Errorf("a server without flags is %+v", info)
	}
	if info.EmulationMajor+info.EmulationMinor+info.MinCompatibilityMajor+info.MinCompatibilityMinor != "" {
		t.Errorf("a server of 1.32 shows an emulated version: %+v", info)
	}
	info = release.Chosen{Version: release.V135, MinCompatibility: release.V134}.Info("x")
	if info.Minor != "36" || info.GitVersion != "v1.36.2+x" || info.EmulationMajor+"."+info.EmulationMinor != "1.35" || info.MinCompatibilityMajor+"."+info.MinCompatibilityMinor != "1.34" {
		t.Errorf("a server that emulates 1.35 is %+v", info)
	}
	for v, want := range map[release.Version]string{release.V132: "1.31", release.V133: "1.33", release.V134: "1.33", release.V135: "1.34", release.V136: "1.35"} {
		if got := v.MinCompatibility().String(); got != want {
			t.Errorf("%s is compatible with %s, want %s", v, got, want)
		}
	}
}
