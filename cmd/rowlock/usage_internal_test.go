package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/usage"
	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/release"
)

// guided runs the binary by one of its names.
func guided(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	root := called(name)
	usage.ExplainErrors(root)
	var out bytes.Buffer
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// TestServeHelp: flags are in sections, of which the first has the fifteen that matter first;
// gates are a page of their own.
func TestServeHelp(t *testing.T) {
	for name, args := range map[string][]string{"rowlock": {"serve", "--help"}, "kube-apiserver": {"--help"}} {
		text, err := guided(t, name, args...)
		if err != nil {
			t.Fatal(err)
		}
		sections := strings.Split(text, " flags:\n\n")
		if len(sections) < 15 || !strings.HasSuffix(sections[0], "\nMost used") {
			t.Fatalf("%s: %d sections\n%s", name, len(sections), text)
		}
		if n := strings.Count(sections[1], "\n      --"); n != len(serve.MostUsedFlags)-1 && n != len(serve.MostUsedFlags) || len(serve.MostUsedFlags) != 15 {
			t.Errorf("%s: %d flags are in the first section:\n%s", name, n, sections[1])
		}
		if misc := sections[len(sections)-1]; strings.Count(misc, " --") > 3 {
			t.Errorf("%s: flags of no section:\n%s", name, misc)
		}
		if strings.Contains(text, gates.Help(release.Default)[5]) || !strings.Contains(text, "help gates") {
			t.Errorf("%s: gates are among the flags:\n%s", name, text)
		}
		for line := range strings.Lines(text) {
			if len(strings.TrimRight(line, " \n")) > 120 {
				t.Errorf("%s: a line of %d columns: %s", name, len(line), line)
			}
		}
		listed, err := guided(t, name, "help", "gates")
		if err != nil {
			t.Fatal(err)
		}
		for _, gate := range gates.Help(release.Default) {
			if !strings.Contains(listed, "  "+gate+"\n") {
				t.Errorf("%s: help gates lacks %s", name, gate)
			}
		}
	}
}

// TestVersion: the flag and the command print the same line.
func TestVersion(t *testing.T) {
	want, err := guided(t, "rowlock", "version")
	if err != nil || !strings.HasPrefix(want, "rowlock ") || strings.Count(want, "\n") != 1 {
		t.Fatalf("%q, %v", want, err)
	}
	if got, err := guided(t, "rowlock", "--version"); err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if got, err := guided(t, "rowlock", "--version=false"); err != nil || got == want {
		t.Errorf("%q, %v", got, err)
	}
}

// TestUsages: no usage quotes a text that pflag would show as the name of the value, and help does not list deprecated
// flags.
func TestUsages(t *testing.T) {
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if name, _ := pflag.UnquoteUsage(f); strings.ContainsAny(name, " `.,") {
				t.Errorf("%s --%s: the value is called %q", cmd.CommandPath(), f.Name, name)
			}
			if f.Deprecated != "" && !f.Hidden {
				t.Errorf("%s --%s is deprecated, and listed", cmd.CommandPath(), f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(command())
	look(serve.APIServerCommand())
	look(history.PluginCommand())
}

// TestCommandLineErrors: errors about the command line suggest the likely command or flag, list valid values, and
// name the command for help.
func TestCommandLineErrors(t *testing.T) {
	serve := func(flag string) []string { return []string{"serve", "--data-dir=" + t.TempDir(), flag} }
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"srve"}, []string{`unknown command "srve" for "rowlock": did you mean "serve"?`, `see "rowlock --help"`}},
		{[]string{"store", "statsu"}, []string{`unknown command "statsu" for "rowlock store": did you mean "status"?`, `see "rowlock store --help"`}},
		{[]string{"elephant"}, []string{`unknown command "elephant" for "rowlock"; see "rowlock --help"`}},
		{[]string{"help", "srve"}, []string{`unknown command "srve" for "rowlock": did you mean "serve"?`, `see "rowlock --help"`}},
		{[]string{"help", "store", "statsu"}, []string{`unknown command "statsu" for "rowlock store": did you mean "status"?`}},
		{[]string{"at", "5m", "get", "pods", "-A"}, []string{"unknown shorthand flag: 'A'", "comes after --", `want "rowlock at TIME [-- KUBECTL ARGUMENTS]`}},
		{[]string{"at", "5m", "get", "pods", "--all-namespaces"}, []string{"unknown flag: --all-namespaces", "comes after --"}},
		{[]string{"at", "5m", "get", "pods"}, []string{"TIME:", "arguments of kubectl come after --"}},
		{[]string{"envtest", "stup"}, []string{`did you mean "setup"?`}},
		{[]string{"store", "backup"}, []string{"accepts 1 arg(s), received 0", `want "rowlock store backup (FILE | --follow DIR)`, `see "rowlock store backup --help"`}},
		{[]string{"serve", "now"}, []string{`see "rowlock serve --help"`}},
		{serve("--secure-prot=1"), []string{`unknown flag: --secure-prot: did you mean "--secure-port"?`, `see "rowlock serve --help"`}},
		{[]string{"store", "status", "--stroe=x"}, []string{`did you mean "--store"?`, `see "rowlock store status --help"`}},
		{serve("--secure-port=x"), []string{`"x" for "--secure-port" flag`, "a whole number"}},
		{serve("--anonymous-auth=perhaps"), []string{`"perhaps" for "--anonymous-auth" flag`, "true or false"}},
		{serve("--event-ttl=1day"), []string{`"1day" for "--event-ttl" flag`, "30s, 5m or 1h30m"}},
		{serve("--history-retention=x"), []string{"--history-retention", "5m, 12h or 7d"}},
		{serve("--history-retention=events=x"), []string{"--history-retention", "events", "5m, 12h or 7d"}},
		{serve("--goaway-chance=x"), []string{"--goaway-chance", "a number"}},
		{serve("--oidc-required-claim=x"), []string{"--oidc-required-claim", "NAME=VALUE"}},
		{serve("--log-format=jsn"), []string{`"jsn" for "--log-format" flag: did you mean "json"?; want text or json`}},
		{serve("--tls-min-version=1.2"), []string{"--tls-min-version", "VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13"}},
		{serve("--tls-cipher-suites=x"), []string{"--tls-cipher-suites", "TLS_AES_128_GCM_SHA256"}},
		{serve("--authorization-mode=Node,RBCA"), []string{`"RBCA" for "--authorization-mode" flag`, "AlwaysDeny", `did you mean "RBAC"?`}},
		{serve("--authorization-webhook-version=v2"), []string{"--authorization-webhook-version", "v1 or v1beta1"}},
		{serve("--authentication-token-webhook-version=v2"), []string{"--authentication-token-webhook-version", "v1 or v1beta1"}},
		{serve("--audit-log-mode=x"), []string{"--audit-log-mode", "batch, blocking or blocking-strict"}},
		{serve("--audit-webhook-mode=x"), []string{"--audit-webhook-mode", "batch, blocking or blocking-strict"}},
		{serve("--audit-log-format=legacy"), []string{"--audit-log-format", "want json"}},
		{serve("--audit-log-version=v1"), []string{"--audit-log-version", "audit.k8s.io/v1"}},
		{serve("--enable-admission-plugins=NamespaceLifecylce"), []string{"--enable-admission-plugins", `did you mean "NamespaceLifecycle"?`}},
		{serve("--disable-admission-plugins=x"), []string{"--disable-admission-plugins", "NamespaceLifecycle"}},
		{serve("--controllers=*,-garbagecollectr"), []string{`--controllers: "-garbagecollectr" is not in the list of known controllers`, `did you mean "garbagecollector"?`}},
		{serve("--postgres-feed=listen"), []string{"--postgres-feed", "notify or poll"}},
		{serve("--kubelet-preferred-address-types=IP"), []string{"--kubelet-preferred-address-types", "InternalIP"}},
		{serve("--sqlite-checkpoint=x"), []string{"--sqlite-checkpoint", "auto", "off"}},
		{serve("--http2=x"), []string{"--http2", "own or standard"}},
		{serve("--history-log-retention=-1m"), []string{"--history-log-retention", "at least 0s"}},
		{serve("--postgres-statement-timeout=-1s"), []string{"--postgres-statement-timeout"}},
		{serve("--in-memory-max-bytes=-1"), []string{"--in-memory-max-bytes", "0 or more"}},
		{serve("--cache-plain-bytes=-2"), []string{"--cache-plain-bytes", "-1 or more"}},
		{serve("--feature-gates=WatchLst=true"), []string{"--feature-gates", "unrecognized feature gate: WatchLst", `did you mean "WatchList"?`, "help gates"}},
		{serve("--feature-gates=WatchList=maybe"), []string{"--feature-gates", "GATE=true or GATE=false"}},
		{serve("--feature-gates=WatchList"), []string{"--feature-gates", "GATE=true or GATE=false"}},
		{serve("--runtime-config=apps/v2=true"), []string{"--runtime-config", "apps/v2", `did you mean "apps/v1"?`, "api/all"}},
		{serve("--runtime-config=api/bata=true"), []string{"--runtime-config", `did you mean "api/beta"?`}},
		{serve("--runtime-config=apps/v1=maybe"), []string{"--runtime-config", "KEY=true or KEY=false"}},
		{serve("--service-cluster-ip-range=x"), []string{"--service-cluster-ip-range", "10.96.0.0/16"}},
		{serve("--service-node-port-range=x"), []string{"--service-node-port-range", "30000-32767"}},
		{serve("--bind-address=localhost"), []string{"--bind-address", "192.0.2.1"}},
		{[]string{"store", "status", "--output=yaml"}, []string{"--output", "table or json"}},
		{[]string{"ready", "--timeout=0s"}, []string{"--timeout", "5s"}},
	} {
		_, err := guided(t, "rowlock", c.args...)
		if err == nil {
			t.Errorf("%q: no error", c.args)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v\nlacks %s", c.args, err, want)
			}
		}
	}
}

// TestOneLine: an error of several lines, such as that of a database with several addresses, is one line that
// can be read.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"failed to connect to `user=a`:\n\t10.0.0.1:5432: refused\n\t10.0.0.2:5432: refused": "failed to connect to `user=a`: 10.0.0.1:5432: refused; 10.0.0.2:5432: refused",
		"one\n\n two \n": "one; two",
		"one\ttwo":       "one\ufffdtwo",
		"":               "",
	} {
		if got := cli.OneLine(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
