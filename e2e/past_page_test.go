package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
)

// hostile are texts that run in a page that does not hold them as texts: in each kind of place
// one of them would.
const hostile = `</script></pre></title><script>document.title='owned'</script><img src=x onerror=document.title='owned'><svg onload=document.title='owned'><b id=owned>"'><i onclick=x>`

// TestPastPage opens a page in a real browser: the drawings of its script and the differences
// between two writes are there, and the content of hostile objects and managers is text.
func TestPastPage(t *testing.T) {
	t.Parallel()
	browser := needs.Program(t, "chromium")
	s := harness.StartT(t, harness.Options{Args: []string{"--history-retention=1h"}})
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &past{t: t, k: s.Kubectl(t), bin: bin, env: append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)}
	p.shop()
	p.k.Run("scale", "-n", "shop", "deploy/web", "--replicas=3")
	p.k.Run("create", "-n", "shop", "configmap", "hostile", "--field-manager="+hostile[:128], "--from-literal=x="+hostile)
	p.k.Run("annotate", "-n", "shop", "configmap", "hostile", "--field-manager=</td><script>document.title=1</script>", "history.rowlock.dev/user="+hostile, "note="+hostile)
	folder := t.TempDir()
	file := filepath.Join(folder, "shop.html")
	p.wants(0, []string{"shop.html: "}, "history", "deploy/web", "cm/hostile", "secret/pw", "-n", "shop", "--html", file)
	look := func(address string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+address)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", browser, err)
		}
		return string(out)
	}
	// A page that is not held to anything shows what the browser would run.
	open := filepath.Join(folder, "open.html")
	if err := os.WriteFile(open, []byte("<title>mine</title><body>"+hostile), 0o600); err != nil {
		t.Fatal(err)
	}
	if dom := look(open); !strings.Contains(dom, "<title>owned") || !strings.Contains(dom, `<b id="owned"`) {
		t.Fatalf("what is hostile does nothing, wherever it stands:\n%s", dom)
	}
	for what, texts := range map[string][]string{
		"0,1,0": {`class="scripted"`, "<circle", `<div class="del">-   replicas: 1</div>`, `<div class="add">+   replicas: 3</div>`, "From revision "},
		"1,1,0": {`&lt;b id=owned&gt;`, "<title>The past of 3 objects</title>", `<div class="add">+     history.rowlock.dev/user:`},
		"2,0,0": {"(hidden, value 1)"},
	} {
		dom := look(file + "#" + what)
		for _, text := range texts {
			if !strings.Contains(dom, text) {
				t.Errorf("%s: no %s in\n%s", what, text, dom)
			}
		}
		for _, bad := range []string{`<b id="owned"`, "<title>owned", "<title>1<", "<img", "onload=\"", "<i onclick", "cXVpZXQ"} {
			if strings.Contains(dom, bad) {
				t.Errorf("%s: the page has %s", what, bad)
			}
		}
	}
}

// TestPastOff: without the group nothing of it is served, and the commands report why.
func TestPastOff(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--history-api=false"}})
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &past{t: t, k: s.Kubectl(t), bin: bin, env: append(os.Environ(), "KUBECONFIG="+s.Kubeconfig)}
	if groups := p.k.Run("get", "--raw", "/apis"); strings.Contains(groups, "rowlock") {
		t.Errorf("there is a trace of it: %s", groups)
	}
	for _, path := range []string{"", "/v1", "/v1/moments/now", "/v1/namespaces/default/revisions"} {
		if out, err := p.k.Try("", "get", "--raw", "/apis/history.rowlock.dev"+path); err == nil || !strings.Contains(err.Error(), "could not find the requested resource") {
			t.Errorf("%s: %s %v", path, out, err)
		}
	}
	for _, args := range [][]string{{"history", "cm/kube-root-ca.crt"}, {"blame", "cm/kube-root-ca.crt"}, {"restore", "--to", "1s"}} {
		p.wants(1, []string{"--history-api=false"}, args...)
	}
}
