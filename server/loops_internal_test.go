package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

type stranger struct{}

func (stranger) Authenticate(*http.Request) (*authx.Authenticated, bool, error) {
	return nil, false, nil
}

// unstarted returns a server that does not run.
func unstarted(t *testing.T, c controllers.Config, more ...Loop) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s, err := New(Config{
		Store: sqlstore.New(storetest.NewShared().Open(), sqlstore.Config{}), Catalogue: kinds.NewCatalogue(builtin.Resources()),
		Authenticator: stranger{}, Authorizer: authx.SystemMasters{}, TLS: &tls.Config{}, Listener: listener, Controllers: c, Loops: more,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLoops pins the table of all loops of a server.
func TestLoops(t *testing.T) {
	describe := func(list []Loop) (out []string) {
		for _, l := range list {
			if l.leads {
				l.Name += " (on one server)"
			}
			out = append(out, l.Name)
		}
		return out
	}
	all := controllers.Config{
		Runs: func(string) bool { return true }, Authority: func() ([]byte, error) { return nil, nil },
		Authentication: func() (map[string]string, error) { return nil, nil }, ServiceNetworks: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		IssueForSecret: func(_, _, _, _ string) (string, error) { return "", nil }, JoinAt: "https://here",
		Host: "host", StorageVersions: true,
	}
	s := unstarted(t, all, Loop{Name: "mine"})
	if d := cmp.Diff([]string{"store", "cache", "definitions", "recent events"}, describe(s.upkeep(0))); d != "" {
		t.Error(d)
	}
	want := []string{
		"own objects", "aggregated documents", "discovery", "documents", "revoked rights", "standby", "namespaces (on one server)", "customresourcedefinitions (on one server)", "serviceaccounts (on one server)",
		"flowschemas (on one server)", "apiservicechecks", "apiservices (on one server)", "serviceaddresses (on one server)", "identity", "storageversions", "certificates (on one server)", "bootstraptokens (on one server)", "aggregation (on one server)",
		"rootca (on one server)", "accounttokens (on one server)", "garbagecollector (on one server)", "resourcequotas (on one server)", "ttlafterfinished (on one server)", "csrcleaner (on one server)", "podgc (on one server)",
		"pvprotection (on one server)", "pvcprotection (on one server)", "storageversiongc (on one server)", "servicecidrs (on one server)", "clusterinfo (on one server)", "clusterauthentication", "mine",
	}
	if d := cmp.Diff(want, describe(s.work(0))); d != "" {
		t.Error(d)
	}
	s.cfg.Store = sqlstore.New(storetest.NewShared().Open(), sqlstore.Config{Sealer: sqlstore.NoEncryption{}})
	if d := cmp.Diff([]string{"store", "cache", "definitions", "recent events", "decryption"}, describe(s.upkeep(0))); d != "" {
		t.Error(d)
	}
	none := unstarted(t, controllers.Config{Runs: func(string) bool { return false }})
	if d := cmp.Diff([]string{"own objects", "aggregated documents", "discovery", "documents", "revoked rights"}, describe(none.work(0))); d != "" {
		t.Error(d)
	}
}

// TestLoopsEndTogether: a loop that fails ends all others; the error of a loop that was ended counts only
// if it writes.
func TestLoopsEndTogether(t *testing.T) {
	s := unstarted(t, controllers.Config{})
	failure, late := errors.New("failed"), errors.New("could not write")
	until := func(err error) func(context.Context) error {
		return func(ctx context.Context) error { <-ctx.Done(); return err }
	}
	for name, test := range map[string]struct {
		writes bool
		loop   func(context.Context) error
		cut    bool
		want   error
	}{
		"one fails":               {loop: func(context.Context) error { return failure }, want: failure},
		"all are ended":           {loop: until(late), cut: true},
		"all are ended, one says": {loop: until(late), cut: true, writes: true, want: late},
	} {
		parent, cut := context.WithCancel(t.Context())
		group, ctx := errgroup.WithContext(parent)
		s.start(ctx, group, []Loop{{Name: "other", Run: until(nil)}, {Name: "one", Run: test.loop, writes: test.writes}})
		if test.cut {
			cut()
		}
		if err := group.Wait(); !errors.Is(err, test.want) || (err != nil) != (test.want != nil) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		cut()
	}
}
