package etcdstub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/etcdstub"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// started is one process's work, inside the test.
type started struct {
	url    string
	cancel context.CancelFunc
	server *etcdstub.Server
	ended  chan error
}

func freeURL(t *testing.T, scheme string) string {
	t.Helper()
	port, err := pgtest.FreePort() // which no other process gets before it is used
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port)
}

func start(t *testing.T, cfg etcdstub.Config) *started {
	t.Helper()
	if len(cfg.Clients) == 0 {
		cfg.Clients = []string{freeURL(t, "http")}
	}
	cfg.Log = io.Discard
	s, err := etcdstub.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &started{url: cfg.Clients[0], cancel: cancel, server: s, ended: make(chan error, 1)}
	go func() { p.ended <- s.Run(ctx) }()
	t.Cleanup(p.stop)
	return p
}

func (p *started) stop() {
	p.cancel()
	p.server.Close()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestFind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, etcdstub.Config{Dir: dir, Unsynced: true})
	// The first address has no listener.
	place, err := etcdstub.Find(t.Context(), []string{freeURL(t, "http"), p.url + "/"}, etcdstub.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	if place.Database != filepath.Join(dir, "rowlock.db") || place.Keys != filepath.Join(dir, "keys") || !place.Unsynced {
		t.Errorf("found %+v", place)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
}

// TestFindWaits: the process may be started at the same moment as its caller.
func TestFindWaits(t *testing.T) {
	url, dir := freeURL(t, "http"), t.TempDir()
	var wg sync.WaitGroup
	defer wg.Wait()
	found := make(chan error, 1)
	wg.Go(func() {
		_, err := etcdstub.Find(t.Context(), []string{url}, etcdstub.TLS{})
		found <- err
	})
	start(t, etcdstub.Config{Dir: dir, Clients: []string{url}})
	if err := <-found; err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := etcdstub.Find(ended, []string{freeURL(t, "http")}, etcdstub.TLS{}); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("where nobody listens: %v", err)
	}
}

func TestFindRefuses(t *testing.T) {
	etcd := httptest.NewServer(http.NotFoundHandler())
	defer etcd.Close()
	if _, err := etcdstub.Find(t.Context(), []string{etcd.URL}, etcdstub.TLS{}); !errors.Is(err, etcdstub.ErrStranger) {
		t.Errorf("a real etcd: %v", err)
	}
	write := func(p etcdstub.Place) string {
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(text) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	mine := t.TempDir()
	if err := os.WriteFile(filepath.Join(mine, "rowlock.place"), []byte("one seal"), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := t.TempDir() // of a user who knows the seal and cannot write it
	if err := os.Symlink(filepath.Join(mine, "rowlock.place"), filepath.Join(linked, "rowlock.place")); err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]etcdstub.Place{
		"of another one":        {Database: filepath.Join(mine, "rowlock.db"), Keys: filepath.Join(mine, "keys"), Seal: "another seal"},
		"cannot read":           {Database: filepath.Join(mine, "none", "rowlock.db"), Keys: filepath.Join(mine, "none", "keys"), Seal: "one seal"},
		"not a file of this":    {Database: filepath.Join(linked, "rowlock.db"), Keys: filepath.Join(linked, "keys"), Seal: "one seal"},
		"comes with rowlock":    {Database: filepath.Join(mine, "rowlock.db"), Keys: filepath.Join(linked, "keys"), Seal: "one seal"},
		"this is a real etcd":   {Database: "rowlock.db", Keys: mine, Seal: "one seal"},
		"and not the etcd that": {Database: filepath.Join(mine, "rowlock.db"), Keys: "keys", Seal: "one seal"},
	} {
		if _, err := etcdstub.Find(t.Context(), []string{write(p)}, etcdstub.TLS{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", p, err, want)
		}
	}
	for _, url := range []string{"unix:///run/etcd", "127.0.0.1:2379", "", "http://"} {
		if _, err := etcdstub.Find(t.Context(), []string{url}, etcdstub.TLS{}); err == nil || !strings.Contains(err.Error(), "want http://") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	metrics := freeURL(t, "http")
	p := start(t, etcdstub.Config{Dir: t.TempDir(), Metrics: []string{metrics}})
	for _, url := range []string{p.url, metrics} {
		for path, want := range map[string]string{
			"/health": `{"health":"true","reason":""}`, "/version": `{"etcdcluster":"3.5.0","etcdserver":"3.5.21"}`, "/readyz": "ok\n", "/livez": "ok\n",
		} {
			if code, text := get(t, url+path); code != http.StatusOK || text != want {
				t.Errorf("%s: %d %q", path, code, text)
			}
		}
	}
	if code, _ := get(t, metrics+"/rowlock/place"); code != http.StatusNotFound {
		t.Errorf("the place by the address of metrics: %d", code)
	}
}

// TestFolder: one process a folder, which outlives it, and none that an etcd has written.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	first := start(t, etcdstub.Config{Dir: dir})
	again := etcdstub.Config{Dir: dir, Clients: []string{freeURL(t, "http")}, Log: io.Discard}
	if s, err := etcdstub.New(again); err == nil || !strings.Contains(err.Error(), "another process keeps it") {
		t.Errorf("two processes on one folder: %v, %v", s, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rowlock.db"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	first.stop()
	if err := <-first.ended; err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "rowlock.db")); err != nil || string(text) != "data" {
		t.Errorf("the data after the end: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "rowlock.place")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the seal after the end: %v", err)
	}
	second := start(t, etcdstub.Config{Dir: dir})
	if _, err := etcdstub.Find(t.Context(), []string{second.url}, etcdstub.TLS{}); err != nil {
		t.Error(err)
	}
	foreign := t.TempDir()
	if err := os.Mkdir(filepath.Join(foreign, "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := etcdstub.New(etcdstub.Config{Dir: foreign, Log: io.Discard}); err == nil || !strings.Contains(err.Error(), "the data of an etcd") {
		t.Errorf("on the data of an etcd: %v", err)
	}
}

// TestLinks: the process does not write through links that another user put into the folder, and follows links to
// the folder once.
func TestLinks(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, "rowlock.place")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	p := start(t, etcdstub.Config{Dir: link})
	if text, err := os.ReadFile(other); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	place, err := etcdstub.Find(t.Context(), []string{p.url}, etcdstub.TLS{})
	if err != nil || place.Database != filepath.Join(dir, "rowlock.db") || place.Keys != filepath.Join(dir, "keys") {
		t.Errorf("%+v, %v", place, err)
	}
	locked := t.TempDir()
	if err := os.Symlink(other, filepath.Join(locked, "rowlock.etcd.lock")); err != nil {
		t.Fatal(err)
	}
	if s, err := etcdstub.New(etcdstub.Config{Dir: locked, Log: io.Discard}); err == nil {
		s.Close()
		t.Error("a lock file that is a link is opened")
	}
}

func TestTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := start(t, etcdstub.Config{})
	place, err := etcdstub.Find(t.Context(), []string{p.url}, etcdstub.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	p.stop()
	if _, err := os.Stat(filepath.Dir(place.Database)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder after the end: %v", err)
	}
}

// TestEndsAtOnce: the process ends at once, also with clients that have connected and send nothing.
func TestEndsAtOnce(t *testing.T) {
	p := start(t, etcdstub.Config{Dir: t.TempDir()})
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	get(t, p.url+"/health") // its connection stays open, unused
	p.stop()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open after the end")
	}
}

func TestProgram(t *testing.T) {
	run := func(env map[string]string, args ...string) (code int, out, log string) {
		var o, l bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		code = etcdstub.Main(ctx, args, func(name string) string { return env[name] }, "v9", &o, &l)
		return code, o.String(), l.String()
	}
	for _, c := range []struct {
		args     []string
		env      map[string]string
		code     int
		out, log string
	}{
		{args: []string{"--help"}, out: "\n  --unsafe-no-fsync"},
		{args: []string{"-h"}, out: "--listen-client-urls URLs"},
		{args: []string{"--version"}, out: "etcd Version: 3.5.21\nGit SHA: rowlock-v9\n"},
		{args: []string{"--nothing"}, code: 2, log: "not defined: -nothing"},
		{args: []string{"gateway"}, code: 1, log: `"gateway" is not a valid flag`},
		{args: []string{"--config-file=x"}, code: 1, log: "not supported"},
		{args: []string{"--client-cert-auth"}, code: 1, log: "needs --trusted-ca-file"},
		{args: []string{"--listen-client-urls=https://127.0.0.1:0"}, code: 1, log: "https needs --cert-file"},
		{args: []string{"--listen-client-urls=unix:///x"}, code: 1, log: "want http://HOST:PORT"},
		{args: []string{"--listen-client-urls=http://127.0.0.1"}, code: 1, log: "the port is missing"},
		{
			args: []string{"--listen-client-urls=http://127.0.0.1:0", "--advertise-client-urls", "http://a:1", "-unsafe-no-fsync", "--listen-peer-urls=http://127.0.0.1:0", "--name", "x", "--pre-vote"},
			log:  "listening on 127.0.0.1:",
		},
		{env: map[string]string{"ETCD_LISTEN_CLIENT_URLS": "http://127.0.0.1:0,", "ETCD_UNSAFE_NO_FSYNC": "true"}, log: "listening on 127.0.0.1:"},
		{env: map[string]string{"ETCD_UNSAFE_NO_FSYNC": "perhaps"}, code: 1, log: "ETCD_UNSAFE_NO_FSYNC=perhaps"},
	} {
		args := c.args
		if c.code == 0 && c.out == "" {
			args = append(args, "--data-dir", t.TempDir())
		}
		code, out, log := run(c.env, args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(log, c.log) {
			t.Errorf("%v %v: code %d\n%s\n%s", c.args, c.env, code, out, log)
		}
	}
}
