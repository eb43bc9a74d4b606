package e2e

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/leniency"
)

// rewrites is the number of times that each file is rewritten.
const rewrites = 100

// reloadStorm is a server whose files change all the time, and the accepted clients.
type reloadStorm struct {
	*access
	old, next, always *harness.Authority // of users: two that take turns, one that stays
	serving           *harness.Authority
	texts             [2]map[string][]byte // the files, in two versions
	extra             *harness.Issuer      // takes turns

	writing sync.Mutex // held while a file is written in pieces
	slow    bool       // a file was once half written for too long
}

// TestReloadStorm: files are rewritten a hundred times under load, atomically and piece by piece. Credentials
// that are valid in all versions are always accepted, others never, and in the end the last version counts.
func TestReloadStorm(t *testing.T) {
	t.Parallel()
	s := startStorm(t)
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var asked atomic.Int64
	steady, token := s.always.Client(t, "steady"), s.issuer.Token(t, s.issuer.Claims("steady"))
	eventually(t, "the provider is found", func() bool { return s.who(t, call{token: token}) == "oidc:steady" })
	stranger := harness.NewAuthority(t, "next").Client(t, "eve", "system:masters")
	for _, w := range []struct {
		want string
		call call
	}{{"steady", call{cert: steady}}, {"oidc:steady", call{token: token}}, {"401", call{cert: stranger}}, {"401", call{token: harness.AdminToken + "x"}}} {
		load.Go(func() {
			for ctx.Err() == nil {
				s.client(w.call.cert).CloseIdleConnections() // each request shakes hands
				if got := s.who(t, w.call); got != w.want {
					if w.want != "401" && s.dawdled() {
						continue
					}
					t.Errorf("in the storm: taken as %s, want %s", got, w.want)
					return
				}
				asked.Add(1)
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	extra := s.extra.Token(t, s.extra.Claims("now"))
	for i := range rewrites {
		s.rewrite(t, s.texts[(i+1)%2], i%3 == 0)
		if i%25 == 24 { // time for it to be taken over
			eventually(t, "the configuration of this moment", func() bool {
				return s.who(t, call{token: extra}) == []string{"401", "extra:now"}[(i+1)%2]
			})
		}
	}
	// The last version is that of the start; one more, which is to count.
	s.rewrite(t, s.texts[1], true)
	for start := time.Now(); s.who(t, call{cert: s.next.Client(t, "late")}) != "late"; time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Error("the last version of the authorities does not count")
			break
		}
	}
	last := s.extra.Token(t, s.extra.Claims("late"))
	for start := time.Now(); s.who(t, call{token: last}) != "extra:late"; time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Error("the last version of the configuration does not count")
			break
		}
	}
	stop()
	load.Wait()
	if s.dawdled() {
		leniency.Note(t, "a file stood half written for more than %s: refusals are not counted", mayStand)
	}
	if got := s.who(t, call{cert: s.old.Client(t, "early")}); got != "401" {
		t.Errorf("an authority that is gone: taken as %s", got)
	}
	if n := s.reloads(t); n < 3 {
		t.Errorf("the configuration was taken over %d times", n)
	}
	if n := asked.Load(); n < rewrites {
		t.Errorf("%d requests are no load", n)
	}
}

func startStorm(t *testing.T) *reloadStorm {
	dir := t.TempDir()
	s := &reloadStorm{
		access: &access{dir: dir, issuer: harness.NewIssuer(t), clients: map[*certificate]*http.Client{}},
		old:    harness.NewAuthority(t, "old"), next: harness.NewAuthority(t, "next"), always: harness.NewAuthority(t, "always"),
		serving: harness.NewAuthority(t, "serving"), extra: harness.NewIssuer(t),
	}
	provider := func(i *harness.Issuer, prefix string) string {
		return fmt.Sprintf("- issuer: {url: %q, audiences: [app], certificateAuthority: %q}\n  claimMappings:\n    username: {claim: sub, prefix: %q}\n", i.URL, i.CA(), prefix)
	}
	head := "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthenticationConfiguration\n"
	for i, first := range []*harness.Authority{s.old, s.next} {
		cert, key := harness.Files(t, s.serving.Server(t))
		s.texts[i] = map[string][]byte{
			"users.crt": append(append([]byte{}, first.PEM...), s.always.PEM...), "serving.crt": cert, "serving.key": key,
		}
	}
	// Half of either is a configuration too, without the provider that stays.
	s.texts[0]["authentication.yaml"] = []byte(head + "jwt:\n" + provider(s.issuer, "oidc:"))
	s.texts[1]["authentication.yaml"] = []byte(head + "jwt:\n" + provider(s.extra, "extra:") + provider(s.issuer, "oidc:"))
	s.rewrite(t, s.texts[0], true)
	file := func(name string) string { return filepath.Join(dir, name) }
	s.s = harness.StartT(t, harness.Options{ServingCA: s.serving.PEM, Args: []string{
		"--client-ca-file", file("users.crt"), "--tls-cert-file", file("serving.crt"), "--tls-private-key-file", file("serving.key"), "--authentication-config", file("authentication.yaml"),
	}})
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(s.serving.PEM)
	return s
}

// rewrite writes a version of all files: each in one stroke, or cut to nothing and then
// in pieces.
func (s *reloadStorm) rewrite(t *testing.T, texts map[string][]byte, whole bool) {
	t.Helper()
	for name, data := range texts {
		path := filepath.Join(s.dir, name)
		if whole {
			if err := os.WriteFile(path+".new", data, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		s.inPieces(t, path, data)
	}
}

// inPieces writes a file bit by bit, and notes if one of them came late.
func (s *reloadStorm) inPieces(t *testing.T, path string, data []byte) {
	t.Helper()
	s.writing.Lock()
	defer s.writing.Unlock()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	last := time.Now()
	for i := range 4 {
		if _, err := f.Write(data[i*len(data)/4 : (i+1)*len(data)/4]); err != nil {
			t.Fatal(err)
		}
		s.slow = s.slow || time.Since(last) > mayStand
		last = time.Now()
		time.Sleep(3 * time.Millisecond)
	}
}

// mayStand bounds how long a file is half written; if it were a little longer, no reader could
// distinguish it from a complete one.
const mayStand = 100 * time.Millisecond

// dawdled reports whether a busy machine has left a file half written for longer than
// that; of one that is being written it waits for the end.
func (s *reloadStorm) dawdled() bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.slow
}

var reloadMetric = regexp.MustCompile(`apiserver_authentication_config_controller_automatic_reloads_total{[^}]*status="success"} (\d+)`)

func (s *reloadStorm) reloads(t *testing.T) int {
	t.Helper()
	return counted(t, reloadMetric, s.admin(t, "GET", "/metrics", ""))
}
