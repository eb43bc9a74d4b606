package server

import (
	"slices"
	"strings"
	"testing"
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
		{"not here", []string{"ImagePolicyWebhook"}, nil, `plugin "ImagePolicyWebhook" is not part of this server`},
	} {
		err := (&Admission{Enable: c.enable, Disable: c.disable}).Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestPluginsAreNamedRightly builds every plugin that there is: the name in the
// registry must be the plugin's own, as answers and metrics show the latter.
func TestPluginsAreNamedRightly(t *testing.T) {
	s := &Server{cfg: Config{Feature: func(string) bool { return true }, Admission: Admission{Configs: map[string][]byte{
		"EventRateLimit": []byte("apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 1, burst: 1}]"),
	}}}}
	for _, p := range plugins {
		if p.build == nil {
			continue
		}
		s.cfg.Admission.Enable = append(s.cfg.Admission.Enable, p.name)
	}
	built, err := s.plugins()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range built {
		got = append(got, p.Name())
	}
	if !slices.Equal(got, s.cfg.Admission.Enable) {
		t.Errorf("plugins are called %q, and registered as %q", got, s.cfg.Admission.Enable)
	}
	s.cfg.Admission = Admission{Disable: []string{"LimitRanger"}}
	built, err = s.plugins()
	if err != nil {
		t.Fatal(err)
	}
	_, on := AdmissionNames()
	if len(built) != len(on)-1 || built[0].Name() != "NamespaceLifecycle" || built[1].Name() == "LimitRanger" {
		t.Errorf("%d plugins run of %d that are on", len(built), len(on))
	}
}
