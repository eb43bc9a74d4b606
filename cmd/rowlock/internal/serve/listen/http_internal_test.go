package listen

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
)

// TestServingFlags looks at which values are refused, and in whose words.
func TestServingFlags(t *testing.T) {
	for flag, want := range map[string]string{
		"--goaway-chance=0.03":       "--goaway-chance can not be less than 0 or greater than 0.02",
		"--goaway-chance=-1":         "--goaway-chance can not be less than 0 or greater than 0.02",
		"--livez-grace-period=-1s":   "--livez-grace-period can not be a negative value",
		"--min-request-timeout=-1":   "--min-request-timeout can not be negative value",
		"--max-requests-inflight=-1": "--max-requests-inflight can not be negative value",
		"--max-requests-inflight=0 --max-mutating-requests-inflight=0":       "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive",
		"--http2-max-streams-per-connection=9999":                            "at most 8191",
		"--cors-allowed-origins=example.com":                                 "does not pin to start/end of host",
		"--cors-allowed-origins=(":                                           "invalid regular expression",
		"--strict-transport-security-directives=max-age=1,forever":           "--strict-transport-security-directives invalid",
		"--tls-cert-file=x":                                                  "go together",
		"--goaway-chance=0.02":                                               "",
		"--strict-transport-security-directives=max-age=1,includeSubDomains": "",
		`--cors-allowed-origins=^https://(www\.)?example\.com$`:              "",
	} {
		o := &Flags{}
		f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		o.AddTo(f)
		o.AddLimits(f)
		if err := f.Parse(strings.Fields(flag)); err != nil {
			t.Fatalf("%s: %v", flag, err)
		}
		err := o.Validate()
		if err == nil {
			err = o.Apply(&server.Config{})
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
}

func TestNamedCertificates(t *testing.T) {
	n := &namedCertificate{names: []string{"api.example.com", "*.internal"}}
	for name, want := range map[string]bool{"api.example.com": true, "API.example.com": true, "a.internal": true, "a.b.internal": false, "internal": false, "": false} {
		if n.matches(name) != want {
			t.Errorf("%q: want %t", name, want)
		}
	}
	for _, bad := range []string{"cert", "a,b,c", "a,b:", "none,none"} {
		o := &Flags{named: []string{bad}}
		if list, err := o.namedCertificates(slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q: %v", bad, list)
		}
	}
	if _, err := cipherSuites([]string{"TLS_NO"}); err == nil {
		t.Error("a cipher suite that nobody knows was taken")
	}
	if _, err := cipherSuites([]string{""}); err == nil {
		t.Error("a cipher suite without a name was taken")
	}
	if ids, err := cipherSuites([]string{}); err != nil || ids != nil { // those of Go
		t.Error(ids, err)
	}
	if ids, err := cipherSuites([]string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"}); err != nil || len(ids) != 2 {
		t.Error(ids, err)
	}
}
