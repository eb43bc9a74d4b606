package auth

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/authx/authnconfig"
	"github.com/rowlock/rowlock/authx/oidc"
)

// TestEmptyLists: a flag that is given without a value turns no check off. It stands for
// the default, as on a stock server, or is refused.
func TestEmptyLists(t *testing.T) {
	build := func(o *AuthenticationFlags, z *AuthorizationFlags) error {
		if err := z.validate(); err != nil {
			return err
		}
		if err := o.accounts.validate(func(string) bool { return true }); err != nil {
			return err
		}
		if _, err := o.proxy.build(func(string) bool { return true }, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		if !o.issuers.used() {
			return nil
		}
		c, _, err := o.issuers.configuration(authnconfig.Rules{})
		if err != nil {
			return err
		}
		_, err = oidc.New(c.JWT[0], nil)
		return err
	}
	const provider = "--oidc-issuer-url=https://a --oidc-client-id=b "
	for flags, want := range map[string]string{
		"":                                              "",
		"--authorization-mode=":                         "at least one authorization-mode must be passed",
		"--authorization-mode=,":                        `authorization-mode "" is not a valid mode`,
		"--service-account-issuer=":                     "service-account-issuer should not be an empty string",
		"--api-audiences=":                              "",
		"--api-audiences=a,":                            "api-audiences should not hold an empty string",
		"--requestheader-allowed-names=":                "",
		"--requestheader-username-headers=,":            "--requestheader-client-ca-file is needed",
		provider + "--oidc-signing-algs=":               "",
		provider + "--oidc-signing-algs=,":              `oidc: unsupported signing alg: ""`,
		provider + "--oidc-signing-algs=none":           `oidc: unsupported signing alg: "none"`,
		provider + "--oidc-required-claim==x":           "claim or expression is required",
		provider + "--oidc-username-claim=":             "claim or expression is required",
		"--oidc-issuer-url= --oidc-client-id=":          "must be specified together",
		"--oidc-issuer-url=https://a --oidc-client-id=": "must be specified together",
	} {
		o, z := &AuthenticationFlags{}, &AuthorizationFlags{}
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.AddTo(f)
		z.AddTo(f)
		if err := f.Parse(strings.Fields(flags)); err != nil {
			t.Fatalf("%s: %v", flags, err)
		}
		err := build(o, z)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
		if strings.Contains(flags, "--oidc-signing-algs= ") || strings.HasSuffix(flags, "--oidc-signing-algs=") {
			if c, _, _ := o.issuers.configuration(authnconfig.Rules{}); !slices.Equal(c.JWT[0].SigningAlgs, []string{"RS256"}) {
				t.Errorf("%s: %q", flags, c.JWT[0].SigningAlgs)
			}
		}
	}
	for _, flag := range []string{"--oidc-required-claim=", "--oidc-required-claim=x"} {
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		(&AuthenticationFlags{}).AddTo(f)
		if err := f.Parse([]string{flag}); err == nil {
			t.Errorf("%s is taken", flag)
		}
	}
}
