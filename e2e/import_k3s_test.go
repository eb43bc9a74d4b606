package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/leniency"
)

const oldIssuer = "https://kubernetes.default.svc.cluster.local"

// k3s makes the folder of a k3s server, which was stopped: server/db/state.db and its
// log, and server/tls. It returns a client's certificate and a pod's token of that cluster.
func k3s(t *testing.T, dir string) (client *tls.Certificate, token string) {
	t.Helper()
	write := func(name string, text []byte) {
		t.Helper()
		path := filepath.Join(dir, "server", "tls", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var clients *harness.Authority
	for _, name := range []string{"server-ca", "client-ca", "request-header-ca"} {
		a := harness.NewAuthority(t, "k3s-"+name)
		write(name+".crt", a.PEM)
		write(name+".key", a.Key(t))
		if name == "client-ca" {
			clients = a
		}
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	write("service.key", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	if err := os.MkdirAll(filepath.Join(dir, "server", "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	k := harness.NewKine(t, filepath.Join(dir, "live.db"))
	put := func(key, value string) { t.Helper(); k.Put("/registry/"+key, []byte(value)) }
	const ns = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q,"uid":"ns-%s"},"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}`
	for _, name := range []string{"default", "kube-system", "shop"} {
		put("namespaces/"+name, fmt.Sprintf(ns, name, name))
	}
	put("serviceaccounts/shop/default", `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default","namespace":"shop","uid":"sa-uid"}}`)
	put("services/specs/default/kubernetes", `{"kind":"Service","apiVersion":"v1","metadata":{"name":"kubernetes","namespace":"default","uid":"k"},"spec":{"clusterIP":"10.43.0.1","clusterIPs":["10.43.0.1"],"type":"ClusterIP","ports":[{"name":"https","port":443,"targetPort":6443,"protocol":"TCP"}],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","sessionAffinity":"None"}}`)
	put("services/specs/shop/web", `{"kind":"Service","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","uid":"w"},"spec":{"clusterIP":"10.43.0.7","clusterIPs":["10.43.0.7"],"type":"NodePort","ports":[{"port":80,"nodePort":30007,"protocol":"TCP"}],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack"}}`)
	k3sOwn(k)
	put("configmaps/shop/settings", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"shop","uid":"cm-uid"},"data":{"colour":"blue"}}`)
	for _, end := range []string{"", "-wal", "-shm"} { // as a machine that lost its power leaves it
		text, err := os.ReadFile(k.Path + end)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "server", "db", "state.db"+end), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	return clients.Client(t, "system:admin", "system:masters"), harness.SignJWT(t, jose.RS256, key, "", map[string]any{
		"iss": oldIssuer, "sub": "system:serviceaccount:shop:default", "aud": []string{oldIssuer}, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "shop", "serviceaccount": map[string]any{"name": "default", "uid": "sa-uid"}},
	})
}

// TestFromK3s is the page "From k3s in ten minutes" from top to bottom: afterwards the old
// administrator's certificate and the tokens of pods are good, the old clients trust the
// server, and addresses and ports that are in use are not given away.
func TestFromK3s(t *testing.T) {
	t.Parallel()
	old, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	client, token := k3s(t, old)
	a, errOut, err := importInto(t, filepath.Join(old, "server", "db", "state.db"), "--data-dir", data, "--take-along", old)
	if err != nil || a.Objects != 7+k3sObjects || a.Claims != 3 || !strings.Contains(errOut, "--client-ca-file "+filepath.Join(data, "client-ca.crt")) {
		t.Fatalf("%v, %+v, %s", err, a, errOut)
	}
	wantLeft(t, a, k3sLeft)
	for _, name := range []string{"ca.crt", "ca.key", "client-ca.crt", "service-account.key", "front-proxy-ca.crt", "front-proxy-ca.key", "rowlock.db"} {
		if info, err := os.Stat(filepath.Join(data, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	s := harness.StartT(t, harness.Options{DataDir: data, Args: []string{
		"--client-ca-file", filepath.Join(data, "client-ca.crt"), "--service-cluster-ip-range", "10.43.0.0/16", "--service-account-issuer", oldIssuer,
	}})
	roots := x509.NewCertPool()
	pemText, err := os.ReadFile(filepath.Join(old, "server", "tls", "server-ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(pemText) {
		t.Fatal(err)
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{*client}}}}
	defer c.CloseIdleConnections()
	if code, body := fetched(t, c, s.URL+"/api/v1/namespaces/shop/configmaps/settings"); code != http.StatusOK || !strings.Contains(string(body), `"uid":"cm-uid"`) {
		t.Errorf("as the old administrator: %d %s", code, body)
	}
	k := s.Kubectl(t)
	if out := k.Run("get", "addons,helmcharts", "-n", "kube-system", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].spec.checksum}"); out != "addon chart c0ffee" {
		t.Errorf("what k3s installed: %s", out)
	}
	if who := asPod(t, s, roots, token); !strings.Contains(who, `User \"system:serviceaccount:shop:default\" cannot list`) {
		t.Errorf("as a pod: %s", who)
	}
	if out, err := k.Try("", "create", "service", "nodeport", "second", "-n", "shop", "--tcp=80", "--node-port=30007"); err == nil || !strings.Contains(out, "already allocated") {
		t.Errorf("a port that is in use was given away: %s", out)
	}
	k.Run("delete", "service", "web", "-n", "shop")
	k.Run("create", "service", "nodeport", "second", "-n", "shop", "--tcp=80", "--node-port=30007")
}

// wantLeft compares the omitted entries with the expected ones, by the beginnings of the reasons.
func wantLeft(t *testing.T, a importAnswer, want map[string]int64) {
	t.Helper()
	for _, l := range a.Left {
		found := false
		for text, n := range want {
			if strings.HasPrefix(l.Why, text) {
				found = n == l.Keys
			}
		}
		if !found {
			t.Errorf("left out are %d as %q, want %v", l.Keys, l.Why, want)
		}
	}
	if len(a.Left) != len(want) {
		t.Errorf("left out is %+v, want %v", a.Left, want)
	}
}

// asPod returns the answer to a pod that lists Secrets, which it may not.
func asPod(t *testing.T, s *harness.Server, roots *x509.CertPool, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/secrets", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestImportRefused: unusable input is refused by name before anything is written.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	old := t.TempDir()
	k3s(t, old)
	db, tlsDir := filepath.Join(old, "server", "db", "state.db"), filepath.Join(old, "server", "tls")
	leaf := filepath.Join(old, "leaf")
	if err := os.MkdirAll(leaf, 0o700); err != nil {
		t.Fatal(err)
	}
	cert, key := harness.Files(t, harness.NewAuthority(t, "x").Client(t, "nobody"))
	for name, text := range map[string][]byte{"leaf/ca.crt": cert, "leaf/ca.key": key, "note.txt": []byte("hello"), "other/ca.key": key} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(old, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(old, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipe := filepath.Join(old, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, "copied.db"), make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	for text, args := range map[string][]string{
		"neither a SQLite database":            {filepath.Join(old, "note.txt")},
		"server/db/state.db":                   {old},
		"nor the URL of a source":              {filepath.Join(old, "none")},
		"want kine+sqlite:FILE":                {"redis://user:secret@host/0"},
		"which is not a certificate authority": {db, "--take-along", leaf},
		"certificate that belongs to it":       {db, "--take-along", filepath.Join(old, "other")},
		"no file by this name is known":        {db, "--take-along", filepath.Join(old, "note.txt")},
		"holds no private key":                 {db, "--service-account-key-file", filepath.Join(tlsDir, "client-ca.crt")},
		"is not a file of at most 1048576":     {db, "--service-account-key-file", "/dev/zero"},
		"it is not a regular file":             {"etcd-snapshot:" + pipe},
		"--skip-hash-check reads it":           {"etcd-snapshot:" + filepath.Join(old, "copied.db")},
		"--encryption-provider-config: ":       {db, "--encryption-provider-config", filepath.Join(old, "note.txt")},
	} {
		_, errOut, err := importInto(t, append(args, "--data-dir", data)...)
		if err == nil || !strings.Contains(errOut, text) || strings.Contains(errOut, "secret@") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: %v, %q, want %q", args, err, errOut, text)
		}
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
}

// TestImportKilled: a run that is killed, while it reads or while it writes, leaves the
// database empty, and the same command again does the rest.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := harness.NewKine(t, filepath.Join(dir, "state.db"))
	const n = 30_000
	k.Begin()
	for i := range n {
		name := fmt.Sprintf("x-%05d", i)
		k.Put("/registry/configmaps/a/"+name, fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","uid":"u"},"data":{"text":%q}}`, name, strings.Repeat("v", 500)))
	}
	k.Commit()
	stores := map[string]func(try int) string{
		"sqlite":   func(try int) string { return fmt.Sprintf("sqlite:%s/rowlock-%d.db", dir, try) },
		"postgres": func(int) string { return createDB(t, sharedPostgres(t), "killed") },
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var url, data string
			for try, killed := 0, false; !killed; try++ { // a busy machine may be too late to kill it
				if try == 20 {
					t.Fatal("each run ended before it was killed")
				}
				url, data = store(try), filepath.Join(dir, fmt.Sprint("data-", name, "-", try))
				killed = importKilled(t, "import.rows", k.Path, url, data) && importKilled(t, "import.json", k.Path, url, data) // it reads; it writes
				if !killed {
					leniency.Note(t, "import %d ended before it was killed", try)
				}
			}
			a, errOut, err := importInto(t, k.Path, "--store", url, "--data-dir", data)
			if err != nil || a.Objects != n || !a.Reused {
				t.Fatalf("%v, %+v, %s", err, a, errOut)
			}
			if r := wantClean(t, url); r.Objects != n {
				t.Errorf("there are %d objects", r.Objects)
			}
		})
	}
}

// importKilled runs an import until a file shows how far it is, and kills it. It is false
// where the import was faster, and the database is filled.
func importKilled(t *testing.T, sign, source, url, data string) bool {
	t.Helper()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "import", source, "--store", url, "--data-dir", data)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if _, err := os.Stat(filepath.Join(data, sign)); err == nil {
			break
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			return false
		case <-time.After(time.Millisecond):
		}
	}
	time.Sleep(20 * time.Millisecond) // into the middle
	_ = cmd.Process.Kill()            // it may have ended
	return <-ended != nil
}
