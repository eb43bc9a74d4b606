package compat

import (
	"crypto/tls"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/authx/authzconfig"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/usage"
	"github.com/rowlock/rowlock/server/admission/plugins"
	"github.com/rowlock/rowlock/server/release"
)

// validWords returns the valid values of flags of serve that take certain words.
func validWords() map[string][]string {
	plugs, _ := plugins.Names(release.Newest)
	var suites []string
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		suites = append(suites, s.Name)
	}
	suites = append(suites, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305")
	modes := []string{"batch", "blocking", "blocking-strict"}
	webhooks := []string{"v1", "v1beta1"}
	return map[string][]string{
		"log-format":                           {"text", "json"},
		"tls-min-version":                      {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"},
		"tls-cipher-suites":                    suites,
		"authorization-mode":                   authzconfig.Types,
		"authorization-webhook-version":        webhooks,
		"authentication-token-webhook-version": webhooks,
		"audit-log-format":                     {"json"},
		"audit-log-mode":                       modes,
		"audit-log-version":                    {"audit.k8s.io/v1"},
		"audit-webhook-mode":                   modes,
		"audit-webhook-version":                {"audit.k8s.io/v1"},
		"enable-admission-plugins":             plugs,
		"disable-admission-plugins":            plugs,
		"admission-control":                    plugs,
		"postgres-feed":                        {"notify", "poll"},
		"kubelet-preferred-address-types": {
			string(corev1.NodeHostName), string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP), string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP),
		},
	}
}

// minimums are the smallest valid values of flags of serve that take numbers and durations.
var minimums = map[string]int64{
	"history-log-retention": 0, "in-memory-max-bytes": 0, "sqlite-max-bytes": 0, "cache-plain-bytes": -1, "resource-quota-sync-period": 0,
	"postgres-poll-interval": 0, "postgres-statement-timeout": 1, "postgres-lock-timeout": 1, "postgres-max-connections": 0,
	"default-not-ready-toleration-seconds": 0, "default-unreachable-toleration-seconds": 0, "min-request-timeout": 0,
}

// onlyFalse are flags of kube-apiserver that are off by default, and which this server cannot turn on, with the reason.
var onlyFalse = map[string]string{
	"emulation-forward-compatible":                "a server serves the APIs of the release that it emulates, and those of no later one",
	"runtime-config-emulation-forward-compatible": "a server serves the APIs of the release that it emulates, and those of no later one",
}

// AddOnlyFalse declares the flags that cannot be turned on, hidden from help.
func AddOnlyFalse(f *pflag.FlagSet) {
	for name, why := range onlyFalse {
		f.Bool(name, false, "only false: "+why)
		f.Lookup(name).Hidden = true
	}
}

// CheckValues finds invalid values. It accepts empty ones, which are checked where the flag is used.
func CheckValues(f *pflag.FlagSet) error {
	words := validWords()
	var err error
	f.Visit(func(flag *pflag.Flag) {
		if err != nil {
			return
		}
		if valid, ok := words[flag.Name]; ok {
			err = checkWords(flag, valid)
		}
		if least, ok := minimums[flag.Name]; ok {
			err = checkNumber(flag, least)
		}
		if why, ok := onlyFalse[flag.Name]; ok && flag.Value.String() != "false" {
			err = fmt.Errorf("--%s cannot be turned on: %s", flag.Name, why)
		}
	})
	return err
}

func checkWords(flag *pflag.Flag, valid []string) error {
	given := []string{flag.Value.String()}
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		given = list.GetSlice()
	}
	for _, word := range given {
		if word != "" && !slices.Contains(valid, word) {
			return fmt.Errorf("invalid argument %q for \"--%s\" flag%s; want %s", word, flag.Name, usage.DidYouMean(word, valid), usage.Or(valid))
		}
	}
	return nil
}

func checkNumber(flag *pflag.Flag, least int64) error {
	text := flag.Value.String()
	switch flag.Value.Type() {
	case "duration":
		if d, err := time.ParseDuration(text); err != nil || int64(d) < least {
			return fmt.Errorf("invalid argument %q for \"--%s\" flag: want a duration of at least %s, such as 30s or 5m", text, flag.Name, time.Duration(least))
		}
	default:
		var n int64
		if _, err := fmt.Sscan(text, &n); err != nil || n < least {
			return fmt.Errorf("invalid argument %q for \"--%s\" flag: want a whole number of %d or more", text, flag.Name, least)
		}
	}
	return nil
}
