package plugins

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
	hooks "github.com/rowlock/rowlock/server/webhook"
)

func TestAdmissionNames(t *testing.T) {
	for _, c := range []struct {
		name            string
		enable, disable []string
		want            string
	}{
		{"nothing", nil, nil, ""},
		{"what is on already", []string{"NamespaceLifecycle", "LimitRanger"}, []string{"Priority"}, ""},
		{"off, though there is none", nil, []string{"ImagePolicyWebhook"}, ""},
		{"no such plugin", []string{"Nope"}, nil, `enable-admission-plugins plugin "Nope" is unknown`},
		{"no such plugin to switch off", nil, []string{"nope"}, `disable-admission-plugins plugin "nope" is unknown`},
		{"both", []string{"Priority", "LimitRanger"}, []string{"LimitRanger", "Priority"}, "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped"},
		{"of a later release", nil, []string{"PodGroupProtection"}, `disable-admission-plugins plugin "PodGroupProtection" is unknown`},
		{"not here", []string{"ImagePolicyWebhook"}, nil, `plugin "ImagePolicyWebhook" is not part of this server`},
	} {
		err := (&Config{Enable: c.enable, Disable: c.disable}).Validate(release.V132)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestLaterNames: plugins of release 1.33 are unknown in 1.32, and may be enabled or disabled in 1.33.
func TestLaterNames(t *testing.T) {
	later := []string{"PodGroupProtection", "PodTopologyLabels", "PodGroupWorkloadExists", "NodeDeclaredFeatureValidator", "JobValidation", "PodResizeValidator"}
	_, old := Names(release.V132)
	_, on := Names(release.V133)
	for _, name := range later {
		if slices.Contains(old, name) || !slices.Contains(on, name) {
			t.Errorf("%s runs in 1.32: %v; in 1.33: %v", name, slices.Contains(old, name), slices.Contains(on, name))
		}
	}
	if err := (&Config{Enable: later[:1], Disable: later[1:]}).Validate(release.V133); err != nil {
		t.Error(err)
	}
}

// TestPluginsAreNamedRightly builds every plugin: its name in the table must be
// its own name, which answers and metrics show.
func TestPluginsAreNamedRightly(t *testing.T) {
	h := Host{Catalogue: kinds.NewCatalogue(builtin.Resources()), Feature: func(string) bool { return true }, Clock: time.Now, Webhooks: &hooks.Client{}}
	h.Cache = cache.New(h.Catalogue)
	h.Objects = objects.New(h.Catalogue, nil, h.Cache)
	c := Config{Configs: map[string][]byte{
		"EventRateLimit": []byte("apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 1, burst: 1}]"),
	}}
	for _, p := range all {
		if p.build != nil {
			c.Enable = append(c.Enable, p.name)
		}
	}
	built, err := Build(h, c)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range built[1:] { // the first decides on reads
		got = append(got, p.Name())
	}
	if !slices.Equal(got, c.Enable) {
		t.Errorf("plugins are called %q, and registered as %q", got, c.Enable)
	}
	built, err = Build(h, Config{Disable: []string{"LimitRanger"}})
	if err != nil {
		t.Fatal(err)
	}
	_, on := Names(release.V136)
	if len(built) != len(on) || built[1].Name() != "NamespaceLifecycle" || built[2].Name() == "LimitRanger" {
		t.Errorf("%d plugins run of %d that are on", len(built)-1, len(on))
	}
}
