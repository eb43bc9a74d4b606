package gates_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/gates"
)

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name     string
		switches map[string]bool
		want     string          // part of the error
		on       map[string]bool // afterwards
	}{
		{"defaults", nil, "", map[string]bool{"APIResponseCompression": true, "CBORServingAndStorage": false, "WatchList": true, "NoSuchGate": false}},
		{"one", map[string]bool{"CBORServingAndStorage": true}, "", map[string]bool{"CBORServingAndStorage": true}},
		{"a stage", map[string]bool{"AllAlpha": true}, "", map[string]bool{"CBORServingAndStorage": true, "ComponentFlagz": true, "WatchList": true}},
		{"a stage but one", map[string]bool{"AllBeta": false, "WatchList": true, "AuthorizeNodeWithSelectors": false}, "", map[string]bool{"WatchList": true, "APIResponseCompression": false, "ComponentSLIs": true}},
		{"unknown", map[string]bool{"NoSuchGate": true}, "unrecognized feature gate: NoSuchGate", nil},
		{"locked", map[string]bool{"ComponentSLIs": false}, "cannot set feature gate ComponentSLIs to false, feature is locked to true", nil},
		{"of an old feature", map[string]bool{"APIListChunking": false}, "cannot set feature gate APIListChunking to false, feature is locked to true", nil},
		{"of an old feature that kubelets still switch", map[string]bool{"ExecProbeTimeout": false}, "", nil},
		{"locked, to what it is", map[string]bool{"ComponentSLIs": true}, "", nil},
		{"needs another", map[string]bool{"AuthorizeWithSelectors": false}, "AuthorizeNodeWithSelectors feature requires AuthorizeWithSelectors feature to be enabled", nil},
	} {
		g := gates.New()
		err := g.Set(c.switches)
		if err == nil {
			err = g.Check()
		}
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		for name, on := range c.on {
			if g.Enabled(name) != on {
				t.Errorf("%s: %s is %t", c.name, name, !on)
			}
		}
	}
}

func TestRemarks(t *testing.T) {
	g := gates.New()
	if err := g.Set(map[string]bool{"CBORServingAndStorage": true, "APIListChunking": true, "WinOverlay": false, "NodeLogQuery": true, "WatchList": true}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Setting GA feature gate APIListChunking=true. It will be removed in a future release.",
		"Feature gate NodeLogQuery=true has no effect on this server.",
		"Feature gate WinOverlay=false has no effect on this server.",
	}
	if !slices.Equal(g.Remarks(), want) {
		t.Errorf("remarks are %q, want %q", g.Remarks(), want)
	}
}

func TestHelp(t *testing.T) {
	help := gates.Help()
	if !slices.Contains(help, "CBORServingAndStorage=true|false (ALPHA - default=false)") || !slices.Contains(help, "WatchList=true|false (BETA - default=true)") || !slices.IsSorted(help) {
		t.Errorf("help: %s", strings.Join(help, "\n"))
	}
	if slices.ContainsFunc(help, func(s string) bool { return strings.HasPrefix(s, "APIListChunking=") }) {
		t.Error("a gate that can no longer be switched is offered")
	}
}

func TestParseOlder(t *testing.T) {
	for _, pair := range []string{"AggregatedDiscoveryEndpoint=false", "ComponentSLIs=false"} {
		if _, err := gates.Parse([]string{pair}); err == nil {
			t.Errorf("%s: taken", pair)
		}
	}
	g, err := gates.ParseOlder([]string{"AggregatedDiscoveryEndpoint=false"})
	if err != nil || g.Enabled("AggregatedDiscoveryEndpoint") || len(g.Remarks()) != 1 {
		t.Error(g, err)
	}
	if _, err := gates.ParseOlder([]string{"ComponentSLIs=false"}); err == nil {
		t.Error("a gate is unlocked that nothing here knows to switch")
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "missing bool value for ",
		"WatchList":                    "missing bool value for WatchList",
		"WatchList=maybe":              `invalid value of WatchList=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`,
		"NoSuchGate=true":              "unrecognized feature gate: NoSuchGate",
		" WatchList = 0":               "unrecognized feature gate: WatchList ",
		"AuthorizeWithSelectors=false": "AuthorizeNodeWithSelectors feature requires AuthorizeWithSelectors feature to be enabled",
	} {
		if _, err := gates.Parse([]string{text}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	g, err := gates.Parse([]string{"WatchList=false", " ComponentFlagz=1"})
	if err != nil || g.Enabled("WatchList") || !g.Enabled("ComponentFlagz") {
		t.Error(g, err)
	}
}
