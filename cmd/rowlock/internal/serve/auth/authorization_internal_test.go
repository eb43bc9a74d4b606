package auth

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/remote/remotetest"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/release"
)

func TestAuthorizationFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	hook := write("hook", remotetest.Text("https://hook.example/", ""))
	policies := write("policies", `{"user":"bob","readonly":true}`)
	bad := write("bad", "{\n")
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
	config := write("config", head+"authorizers: [{type: RBAC, name: rbac}, {type: ABAC, name: abac}]")
	empty := write("empty", head)
	for flags, want := range map[string]string{
		"":                                            "",
		"--authorization-mode=AlwaysAllow":            "",
		"--authorization-mode=RBAC,Foo":               `authorization-mode "Foo" is not a valid mode`,
		"--authorization-mode=RBAC,RBAC":              `authorization-mode ["RBAC" "RBAC"] has mode specified more than once`,
		"--authorization-mode=":                       "at least one authorization-mode must be passed",
		"--authorization-mode=Webhook":                "authorization-mode Webhook's authorization config file not passed",
		"--authorization-mode=ABAC":                   "authorization-mode ABAC's authorization policy file not passed",
		"--authorization-mode=Webhook,ABAC,X":         `[authorization-mode Webhook's authorization config file not passed, authorization-mode ABAC's authorization policy file not passed, authorization-mode "X" is not a valid mode]`,
		"--authorization-policy-file=" + policies:     "cannot specify --authorization-policy-file without mode ABAC",
		"--authorization-webhook-config-file=" + hook: "cannot specify --authorization-webhook-config-file without mode Webhook",
		"--authorization-mode=ABAC --authorization-policy-file=" + policies:                                           "",
		"--authorization-mode=ABAC --authorization-policy-file=" + dir + "/none":                                      "invalid authorization config: --authorization-policy-file: open " + dir + "/none: no such file or directory",
		"--authorization-mode=ABAC --authorization-policy-file=" + bad:                                                "invalid authorization config: --authorization-policy-file: error reading policy file " + bad + ", line 1: couldn't get version/kind; json parse error: unexpected end of JSON input",
		"--authorization-mode=Webhook --authorization-webhook-config-file=" + hook:                                    "",
		"--authorization-mode=Webhook --authorization-webhook-version=v1 --authorization-webhook-config-file=" + hook: "",
		"--authorization-mode=Webhook --authorization-webhook-version=v3 --authorization-webhook-config-file=" + hook: `invalid authorization config: --authorization-webhook-config-file ` + hook + `: unsupported webhook authorizer version "v3", supported versions are "v1", "v1beta1"`,
		"--authorization-config=" + config:                                                                            "--authorization-config " + config + ": authorization-mode ABAC's authorization policy file not passed",
		"--authorization-config=" + config + " --authorization-policy-file=" + policies:                               "",
		"--authorization-config=" + config + " --authorization-mode=RBAC":                                             "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined",
		"--authorization-config=" + config + " --authorization-webhook-cache-unauthorized-ttl=1s":                     "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined",
		"--authorization-config=" + empty:                                                                             "--authorization-config " + empty + ": authorizers: Required value: at least one authorization mode must be defined",
		"--authorization-config=" + dir + "/none":                                                                     "--authorization-config: open " + dir + "/none: no such file or directory",
	} {
		o := &AuthorizationFlags{}
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddTo(set)
		if err := set.Parse(strings.Fields(flags)); err != nil {
			t.Fatal(err)
		}
		z, err := o.Build(cache.New(nil), release.Default, func(string) bool { return true }, "id", nil, slog.New(slog.DiscardHandler))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v\nwant %s", flags, err, want)
		}
		if err == nil && (z.reload != nil) != (o.file != "") {
			t.Errorf("%s: files are followed, and nothing else", flags)
		}
	}
}

// TestABACMode: the authorizer of the flags decides by the file.
func TestABACMode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policies")
	if err := os.WriteFile(file, []byte(`{"user":"bob","readonly":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &AuthorizationFlags{}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddTo(set)
	if err := set.Parse([]string{"--authorization-mode=ABAC", "--authorization-policy-file", file}); err != nil {
		t.Fatal(err)
	}
	z, err := o.Build(cache.New(nil), release.Default, func(string) bool { return true }, "id", nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		user, group, verb string
		want              authx.Decision
	}{
		{"bob", "g", "get", authx.Allow},
		{"bob", "g", "create", authx.NoOpinion},
		{"eve", "g", "get", authx.NoOpinion},
		{"eve", authx.GroupMasters, "create", authx.Allow},
	} {
		a := &authx.Attributes{User: &authx.Identity{Name: tc.user, Groups: []string{tc.group}}, Verb: tc.verb, Resource: "pods", ResourceRequest: true}
		if d, _, err := z.authorizer.Authorize(t.Context(), a); d != tc.want || err != nil {
			t.Errorf("%v: %v %v", tc, d, err)
		}
	}
}
