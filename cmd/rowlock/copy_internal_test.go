package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote/copying"
)

const evilText = "\x1b]0;x\x07\u009b\u202e"

// TestCopyTableIsText: neither cluster moves the cursor of who reads the answer; nor does
// what an error says.
func TestCopyTableIsText(t *testing.T) {
	a := copyAnswer{
		Source: "s" + evilText, Target: "t" + evilText, LeftOut: []remote.LeftOut{{Resource: "l" + evilText, Reason: "because " + evilText}},
		Report: &copying.Report{
			Resources: []copying.Tally{{Resource: "r" + evilText}},
			Details:   []copying.Detail{{Resource: "r" + evilText, Namespace: "ns" + evilText, Name: "n" + evilText, Outcome: copying.Failed, Reason: "it is " + evilText}},
		},
	}
	var b strings.Builder
	a.table(&b)
	text := b.String() + oneLine(errors.New("no\n"+evilText))
	if strings.ContainsAny(text, evilText[:1]+"\x07\u009b\u202e") || !strings.Contains(text, "because ") || !strings.Contains(text, "it is ") || !strings.Contains(text, "no; ") {
		t.Errorf("%q", text)
	}
}

// TestCopyTableIsShort: what is skipped for one reason is one line, and still counted.
func TestCopyTableIsShort(t *testing.T) {
	a := copyAnswer{Report: &copying.Report{}}
	for i := range 20 {
		a.Details = append(a.Details, copying.Detail{Resource: "clusterroles", Name: fmt.Sprint("r", i), Outcome: copying.Skipped, Reason: "its own"}, copying.Detail{Resource: "pods", Name: fmt.Sprint("p", i), Outcome: copying.Failed, Reason: "no"})
	}
	a.Details = append(a.Details, copying.Detail{Resource: "secrets", Name: "alone", Outcome: copying.Skipped, Reason: "its own"})
	var b strings.Builder
	a.table(&b)
	if text := b.String(); strings.Count(text, "clusterroles") != 1 || !strings.Contains(text, "(20 objects)\tits own") || strings.Count(text, "failed\tpods") != 20 || !strings.Contains(text, "alone\tits own") {
		t.Errorf("%s", text)
	}
}

// TestCopyRefuses: flags that say nothing about this source, or nothing at all, are refused
// by their names.
func TestCopyRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"--to-kubeconfig is needed":            {},
		"--encryption-provider-config is":      {"--to-kubeconfig", "x", "--from-kubeconfig", "y", "--encryption-provider-config", "z"},
		"--from-context is about a live":       {"--to-kubeconfig", "x", "--from-context", "y"},
		"--skip-forbidden is about a live":     {"--to-kubeconfig", "x", "--skip-forbidden"},
		"cannot both be the source":            {"--to-kubeconfig", "x", "--from-kubeconfig", "y", "--store", "z"},
		`--namespace "shop,": a name is empty`: {"--to-kubeconfig", "x", "-n", "shop,"},
		"--exclude":                            {"--to-kubeconfig", "x", "--exclude", "a,,b"},
		"--qps NaN":                            {"--to-kubeconfig", "x", "--qps", "NaN"},
		"--workers 0":                          {"--to-kubeconfig", "x", "--workers", "0"},
		"--selector":                           {"--to-kubeconfig", "x", "-l", "a=b=c"},
	} {
		cmd := copyCommand()
		cmd.SetArgs(args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// TestDial: a kubeconfig is what it says, files beside it included; one that says nothing is
// an error; and credentials stay with its server.
func TestDial(t *testing.T) {
	dir, write := folder(t)
	write("token", "secret")
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer other.Close()
	var shown string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("Authorization")
		http.Redirect(w, r, other.URL, http.StatusFound)
	}))
	defer srv.Close()
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"c","user":"u"}},{"name":"b","context":{"cluster":"none","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority":"ca.crt"}}],"users":[{"name":"u","user":{"tokenFile":"token"}}]}`, srv.URL+"/")
	write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	url, client, err := dial("--flag", write("config", config), "")
	if err != nil || url != srv.URL {
		t.Fatalf("%s, %v", url, err)
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound || shown != "Bearer secret" {
		t.Errorf("%s to %q", resp.Status, shown)
	}
	for name, c := range map[string]struct{ path, context, want string }{
		"empty":            {write("empty", ""), "", "no configuration"},
		"no such file":     {filepath.Join(dir, "none"), "", "no such file"},
		"no such context":  {filepath.Join(dir, "config"), "x", "context was not found for specified context: x"},
		"no such cluster":  {filepath.Join(dir, "config"), "b", "no configuration"},
		"no configuration": {write("text", "hello"), "", "--flag"},
	} {
		if _, _, err := dial("--flag", c.path, c.context); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--flag") {
			t.Errorf("%s: %v, want one about --flag with %q", name, err, c.want)
		}
	}
}
