package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/authx/remote/remotetest"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/access"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve"
	"github.com/rowlock/rowlock/server/datadir"
)

// notFiles are flags of serve whose names or descriptions sound like files, and which
// name none that has to be read. A server that cannot use its cache file starts without it and logs why, which tests of
// package server hold.
var notFiles = []string{
	"allow-metric-labels", "audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize", "audit-log-compress", "log-format",
	"cache-file", "cache-file-from",
}

// folder returns a new one, and what writes files into it and returns their paths.
func folder(t *testing.T) (dir string, write func(name, text string) string) {
	t.Helper()
	dir = t.TempDir()
	return dir, func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// TestEveryFileFlag: a fault of a file stops the start with one error that names
// the flag and the file, whichever flag and fault it is.
func TestEveryFileFlag(t *testing.T) {
	dir, write := folder(t)
	d, err := datadir.Open(filepath.Join(dir, "data"), datadir.Options{ServerURL: "https://127.0.0.1", Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	const secret = "5d41402abc4b2a76"
	bad := map[string]string{
		"missing": filepath.Join(dir, "missing"), "folder": filepath.Join(dir, "data"),
		"empty": write("empty", ""), "garbage": write("garbage", secret+"\x00{[\"\n"),
		"empty PEM": write("pem", "-----BEGIN PRIVATE KEY-----\n"+secret+"\n-----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\n"+secret+"\n-----END CERTIFICATE-----\n"),
	}
	if os.Geteuid() != 0 { // root can read everything
		bad["locked"] = write("locked", secret)
		if err := os.Chmod(bad["locked"], 0); err != nil {
			t.Fatal(err)
		}
	}
	policy := write("policy", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
	good := write("kubeconfig", remotetest.Text("https://hook.example/", ""))
	config := write("authorization", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: ABAC, name: abac}]\n")
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	for _, tc := range []struct {
		flag    string
		with    []string
		allowed []string // faults that are none for this flag
	}{
		{flag: "client-ca-file"},
		{flag: "token-auth-file", allowed: []string{"empty"}},
		{flag: "requestheader-client-ca-file", with: []string{"--requestheader-username-headers=X-Remote-User"}},
		{flag: "tls-cert-file", with: []string{"--tls-private-key-file", d.ServingKey}},
		{flag: "tls-private-key-file", with: []string{"--tls-cert-file", d.ServingCert}},
		{flag: "service-account-key-file"},
		{flag: "service-account-signing-key-file"},
		{flag: "oidc-ca-file", with: []string{"--oidc-issuer-url=https://a", "--oidc-client-id=b"}},
		{flag: "authentication-config"},
		{flag: "authentication-token-webhook-config-file"},
		{flag: "authorization-config"},
		{flag: "authorization-policy-file", with: []string{"--authorization-mode=ABAC"}, allowed: []string{"empty"}},
		{flag: "authorization-policy-file", with: []string{"--authorization-config", config}, allowed: []string{"empty"}},
		{flag: "authorization-webhook-config-file", with: []string{"--authorization-mode=Webhook"}},
		{flag: "audit-policy-file", with: []string{"--audit-log-path=-"}},
		{flag: "audit-log-path", with: []string{"--audit-policy-file", policy}, allowed: []string{"missing", "empty", "garbage", "empty PEM"}},
		{flag: "audit-webhook-config-file", with: []string{"--audit-policy-file", policy}},
		{flag: "admission-control-config-file"},
		{flag: "kubelet-client-certificate", with: []string{"--kubelet-client-key", d.AdminKey}},
		{flag: "kubelet-client-key", with: []string{"--kubelet-client-certificate", d.AdminCert}},
		{flag: "kubelet-certificate-authority"},
		{flag: "proxy-client-cert-file", with: []string{"--proxy-client-key-file", d.AdminKey}},
		{flag: "proxy-client-key-file", with: []string{"--proxy-client-cert-file", d.AdminCert}},
		{flag: "tracing-config-file"},
		{flag: "egress-selector-config-file"},
		{flag: "allow-metric-labels-manifest", allowed: []string{"empty"}},
	} {
		for what, path := range bad {
			if slices.Contains(tc.allowed, what) {
				continue
			}
			args := append([]string{"serve", "--bind-address=127.0.0.1", "--secure-port=" + free(), "--data-dir=" + d.Path, "--" + tc.flag + "=" + path}, tc.with...)
			hidden := secret
			if tc.flag == "authorization-policy-file" {
				hidden = "" // its errors quote the line, as those of a stock server do
			}
			refused(t, args, tc.flag, path, hidden)
		}
	}
	for what, path := range bad {
		refused(t, []string{"serve", "--bind-address=127.0.0.1", "--secure-port=" + free(), "--data-dir=" + d.Path, "--tls-sni-cert-key=" + path + "," + d.ServingKey}, "tls-sni-cert-key", path, secret)
		refused(t, []string{"serve", "--bind-address=127.0.0.1", "--secure-port=" + free(), "--data-dir=" + d.Path, "--tls-sni-cert-key=" + d.ServingCert + "," + path}, "tls-sni-cert-key", path, secret)
		refused(t, []string{"credential", "--no-cache", "--service-account=a", "--kubeconfig=" + path}, "kubeconfig", path, secret)
		refused(t, []string{"credential", "--no-cache", "--node=a", "--kubeconfig=" + good, "--bootstrap-token-file=" + path, "--timeout=1s"}, "bootstrap-token-file", path, secret, "garbage", "empty PEM")
		refused(t, []string{"kubeconfig", "--data-dir=" + d.Path, "--user=jane", "--certificate-authority=" + path}, "certificate-authority", path, secret)
		refused(t, []string{"kubeconfig", "--data-dir=" + d.Path, "--token-file=" + path}, "token-file", path, secret, "garbage", "empty PEM")
		refused(t, []string{"kubeconfig", "--data-dir=" + d.Path, "--service-account=a", "--base-kubeconfig=" + path}, "base-kubeconfig", path, secret)
		refused(t, []string{"serve", "--bind-address=127.0.0.1", "--secure-port=" + free(), "--data-dir=" + d.Path, "--encryption-provider-config=" + path}, "encryption-provider-config", path, secret)
		refused(t, []string{"store", "verify", "--data-dir=" + d.Path, "--encryption-provider-config=" + path}, "encryption-provider-config", path, secret)
		if what != "missing" && what != "empty" {
			refused(t, []string{"serve", "--bind-address=127.0.0.1", "--secure-port=" + free(), "--data-dir=" + d.Path, "--store=sqlite:" + path}, "store", path, secret)
		}
	}
	refused(t, []string{"kubeconfig", "--data-dir=" + d.Path, "--user=jane", "--output=" + d.Path}, "output", d.Path, secret)
}

// refused runs a command that must fail, with an error that names a flag and a file and
// no secret. Files of these kinds may hold anything.
func refused(t *testing.T, args []string, flag, path, secret string, anything ...string) {
	t.Helper()
	for _, kind := range anything {
		if filepath.Base(path) == map[string]string{"garbage": "garbage", "empty PEM": "pem"}[kind] {
			return
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := command()
	var log bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(&log)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
		t.Errorf("%q: %v, want an error\n%s", args, err, &log)
	case !strings.Contains(err.Error(), "--"+flag) || !strings.Contains(err.Error(), path) || secret != "" && strings.Contains(err.Error()+log.String(), secret):
		t.Errorf("%q: %v\nwant an error with --%s and %s, and no secret", args, err, flag, path)
	}
}

// TestFileFlagsAreKnown: a flag that names a file is one of those that TestEveryFileFlag
// looks at, or has no effect.
func TestFileFlagsAreKnown(t *testing.T) {
	text, err := os.ReadFile("files_internal_test.go")
	if err != nil {
		t.Fatal(err)
	}
	look := func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			sounds := slices.ContainsFunc([]string{"file", "config", "cert", "path", "authority", "manifest", "kubeconfig"}, func(s string) bool { return strings.Contains(f.Name, s) })
			if f.Value.Type() == "bool" || strings.HasPrefix(f.Usage, "no effect") || !sounds || slices.Contains(notFiles, f.Name) || f.Name == "runtime-config" {
				return
			}
			if !strings.Contains(string(text), `"`+f.Name+`"`) {
				t.Errorf("%s: nobody has tried --%s with files that cannot be read", cmd.Name(), f.Name)
			}
		})
	}
	for _, cmd := range []*cobra.Command{serve.Command(), access.CredentialCommand(), access.KubeconfigCommand()} {
		look(cmd)
	}
}

// TestLooseFiles: files with secrets that other users may read or write are logged, with
// their flag and mode; a link counts as its target.
func TestLooseFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o700: false, 0o640: true, 0o604: true, 0o620: true, 0o602: true, 0o666: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		flagfile.WarnLoose(slog.New(slog.NewTextHandler(&log, nil)), flagfile.New("--flag", path), flagfile.New("--link", link), flagfile.New("--none", path+".none"), flagfile.New("--unset", ""))
		for _, flag := range []string{"--flag", "--link"} {
			want := "flag=" + flag + " file=" + map[string]string{"--flag": path, "--link": link}[flag] + " mode=0" + strconv.FormatInt(int64(mode), 8)
			if strings.Contains(log.String(), want) != warned {
				t.Errorf("%04o: want %q %v:\n%s", mode, want, warned, &log)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != map[bool]int{true: 2}[warned] {
			t.Errorf("%04o: %d lines:\n%s", mode, n, &log)
		}
	}
}
