package aggregator_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/webhook"
	"github.com/rowlock/rowlock/sqlstore"
)

// world is a cache of APIServices, and an Aggregator on it.
type world struct {
	*aggregator.Aggregator
	t     testing.TB
	cache *cache.Cache
	last  int64
	live  map[string]sqlstore.Row
}

func newWorld(t testing.TB, cfg aggregator.Config) *world {
	w := &world{t: t, cache: cache.NewWith(kinds.NewCatalogue(builtin.Resources()), cache.Config{}), live: map[string]sqlstore.Row{}}
	cfg.Cache = w.cache
	w.Aggregator = aggregator.New(cfg)
	t.Cleanup(w.Close)
	return w
}

// put writes an APIService; one without a group deletes it.
func (w *world) put(name string, spec apiregistrationv1.APIServiceSpec) *apiregistrationv1.APIService {
	w.t.Helper()
	s := &apiregistrationv1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}
	value, err := json.Marshal(s)
	if err != nil {
		w.t.Fatal(err)
	}
	w.last++
	row := sqlstore.Row{Key: sqlstore.Key{Resource: aggregator.Storage, Name: name}, Revision: w.last, Value: value, Deleted: spec.Version == ""}
	change := sqlstore.Change{Row: row}
	if old, ok := w.live[name]; ok {
		change.PrevRevision, change.PrevValue = old.Revision, old.Value
	}
	if w.live[name] = row; row.Deleted {
		delete(w.live, name)
	}
	w.cache.Apply([]sqlstore.Change{change})
	return s
}

// write puts an object into the cache.
func (w *world) write(resource, namespace, name string, obj any) {
	w.t.Helper()
	value, err := json.Marshal(obj)
	if err != nil {
		w.t.Fatal(err)
	}
	w.last++
	row := sqlstore.Row{Key: sqlstore.Key{Resource: resource, Namespace: namespace, Name: name}, Revision: w.last, Value: value}
	change, key := sqlstore.Change{Row: row}, resource+"/"+namespace+"/"+name
	if old, ok := w.live[key]; ok {
		change.PrevRevision, change.PrevValue = old.Revision, old.Value
	}
	w.live[key] = row
	w.cache.Apply([]sqlstore.Change{change})
}

func to(namespace, name string, port int32) *apiregistrationv1.ServiceReference {
	return &apiregistrationv1.ServiceReference{Namespace: namespace, Name: name, Port: &port}
}

func TestServices(t *testing.T) {
	w := newWorld(t, aggregator.Config{})
	names := func() (all []string, order string) {
		s := w.Services()
		for _, one := range s.All() {
			all = append(all, one.Name)
		}
		for _, g := range s.Groups() {
			order += g.Name + ":"
			for _, v := range g.Versions {
				order += " " + v.Spec.Version
			}
			order += "; "
		}
		return all, order
	}
	if all, _ := names(); len(all) > 0 || w.Services().AnyRemote() {
		t.Fatalf("there are %v", all)
	}
	spec := func(group, version string, g, v int32) apiregistrationv1.APIServiceSpec {
		return apiregistrationv1.APIServiceSpec{Group: group, Version: version, GroupPriorityMinimum: g, VersionPriority: v}
	}
	w.put("v1.", spec("", "v1", 18000, 1))
	w.put("v1.b", spec("b", "v1", 10, 10))
	w.put("v2beta1.b", spec("b", "v2beta1", 500, 10))
	w.put("v1.a", spec("a", "v1", 500, 1))
	w.put("v0.b", spec("b", "v0", 1, 99))
	w.put("v3.c", spec("c", "v3", 501, 1))
	before := w.Services()
	if all, order := names(); order != ": v1; c: v3; a: v1; b: v0 v1 v2beta1; " || len(all) != 6 {
		t.Errorf("%v, %s", all, order)
	}
	if w.Services() != before {
		t.Error("made again though nothing changed")
	}
	gv := schema.GroupVersion{Group: "b", Version: "v1"}
	if w.Services().Remote(gv) != nil {
		t.Error("a local one is remote")
	}
	remote := spec("b", "v1", 10, 10)
	remote.Service = to("ns", "s", 443)
	w.put("v1.b", remote)
	if got := w.Services().Remote(gv); got == nil || got.Name != "v1.b" || !w.Services().AnyRemote() {
		t.Errorf("after the change: %v", got)
	}
	w.put("v1.b", apiregistrationv1.APIServiceSpec{})
	if w.Services().Remote(gv) != nil || w.Services().AnyRemote() {
		t.Error("still there after it was deleted")
	}
}

// pair makes a certificate that signs itself.
func pair(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func bundleOf(c *tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
}

// extension is a server that answers with the request that it received.
type extension struct {
	*httptest.Server
	cert        *tls.Certificate
	connections atomic.Int32
}

func newExtension(t *testing.T, handler http.HandlerFunc) *extension {
	e := &extension{cert: pair(t, "s.ns.svc")}
	e.Server = httptest.NewUnstartedServer(handler)
	e.TLS = &tls.Config{Certificates: []tls.Certificate{*e.cert}, ClientAuth: tls.RequestClientCert}
	e.EnableHTTP2 = true
	e.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			e.connections.Add(1)
		}
	}
	e.StartTLS()
	t.Cleanup(e.Close)
	return e
}

// port returns the port of the server on the loopback.
func (e *extension) port() int32 { return int32(e.Listener.Addr().(*net.TCPAddr).Port) }

// external finds Services of a type that leads to a name, and nothing else.
func external(name string) *webhook.Resolver {
	return &webhook.Resolver{Service: func(_ context.Context, _, _ string) (*corev1.Service, error) {
		return &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: name}}, nil
	}}
}

func TestRoundTrip(t *testing.T) {
	type seen struct {
		Method, URI, Proto, Shown, Name, Body string
		Header                                http.Header
	}
	e := newExtension(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s := seen{Method: r.Method, URI: r.RequestURI, Proto: r.Proto, Name: r.TLS.ServerName, Body: string(body), Header: r.Header}
		if len(r.TLS.PeerCertificates) > 0 {
			s.Shown = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
		_ = json.NewEncoder(w).Encode(s)
	})
	var shown atomic.Pointer[tls.Certificate]
	shown.Store(pair(t, "front"))
	w := newWorld(t, aggregator.Config{Services: external("localhost"), Certificate: shown.Load})
	service := w.put("v1.g.example", apiregistrationv1.APIServiceSpec{Group: "g.example", Version: "v1", Service: to("ns", "s", e.port()), CABundle: bundleOf(e.cert)})
	who := &authx.Identity{Name: "ann", UID: "7", Groups: []string{"dev team", "system:authenticated"}, Extra: map[string][]string{"acme.com/p %x": {"1", "2"}}}
	ask := func() seen {
		t.Helper()
		r := httptest.NewRequest(http.MethodPut, "/apis/g.example/v1/things/a%2Fb?x=1", strings.NewReader("body"))
		r.Header = http.Header{
			"Authorization": {"Bearer secret"}, "X-Remote-User": {"admin"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-Own": {"1"},
			"X-Remote-Uid": {"0"}, "Impersonate-User": {"admin"}, "X-Http-Method-Override": {"DELETE"}, "X_HTTP_Method": {"DELETE"}, "X-Original-Url": {"/apis/g.example/v1/others"}, "X-Rewrite-Url": {"/"}, "Cookie": {"a=b"}, "Accept": {"application/json"}, "Accept-Encoding": {"identity"},
		}
		resp, err := w.RoundTrip(t.Context(), service, who, r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusFound {
			t.Errorf("status %d: it was followed", resp.StatusCode)
		}
		var s seen
		if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if r.Header.Get("Authorization") == "" {
			t.Error("the request itself was changed")
		}
		return s
	}
	want := seen{
		Method: "PUT", URI: "/apis/g.example/v1/things/a/b?x=1", Proto: "HTTP/2.0", Shown: "front", Name: "s.ns.svc", Body: "body",
		Header: http.Header{
			"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "Content-Length": {"4"}, "Cookie": {"a=b"}, "User-Agent": {"Go-http-client/2.0"},
			"X-Remote-User": {"ann"}, "X-Remote-Group": {"dev team", "system:authenticated"}, "X-Remote-Extra-Acme.com%2fp%20%25x": {"1", "2"},
		},
	}
	if d := gocmp.Diff(want, ask()); d != "" {
		t.Error(d)
	}
	for range 10 {
		ask()
	}
	if n := e.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	shown.Store(pair(t, "renewed"))
	if got := ask(); got.Shown != "renewed" || e.connections.Load() != 2 {
		t.Errorf("after another certificate: %s, %d connections", got.Shown, e.connections.Load())
	}
	shown.Store(nil)
	if got := ask(); got.Shown != "" {
		t.Errorf("shown without one: %s", got.Shown)
	}
}

// TestUnreachable: reasons why a server cannot be reached, and their conditions.
func TestUnreachable(t *testing.T) {
	var served atomic.Int32
	e := newExtension(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		change func(*apiregistrationv1.APIServiceSpec)
		host   string // "": localhost
		want   string // part of the error; "" for none
		before bool   // nothing was dialled
	}{
		"trusted":         {},
		"not looked at":   {change: func(s *apiregistrationv1.APIServiceSpec) { s.CABundle, s.InsecureSkipTLSVerify = nil, true }},
		"of the system":   {change: func(s *apiregistrationv1.APIServiceSpec) { s.CABundle = nil }, want: "certificate signed by unknown authority"},
		"another":         {change: func(s *apiregistrationv1.APIServiceSpec) { s.CABundle = bundleOf(pair(t, "other")) }, want: "certificate signed by unknown authority"},
		"another name":    {change: func(s *apiregistrationv1.APIServiceSpec) { s.Service.Name = "t" }, want: "not t.ns.svc"},
		"no PEM":          {change: func(s *apiregistrationv1.APIServiceSpec) { s.CABundle = []byte("x") }, want: "unable to load root certificates: unable to parse bytes as PEM block", before: true},
		"local":           {change: func(s *apiregistrationv1.APIServiceSpec) { s.Service = nil }, want: "names no service", before: true},
		"not resolved":    {host: "none", want: "gone", before: true},
		"loopback":        {host: "127.0.0.1", want: "address not allowed"},
		"mapped loopback": {host: "::ffff:127.0.0.1", want: "address not allowed"},
		"metadata":        {host: "169.254.169.254", want: "address not allowed"},
		"link":            {host: "fe80::1", want: "address not allowed"},
		"nowhere":         {host: "0.0.0.0", want: "address not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			services := external(cmp.Or(c.host, "localhost"))
			if c.host == "none" {
				services.Service = func(context.Context, string, string) (*corev1.Service, error) { return nil, gone }
			}
			w := newWorld(t, aggregator.Config{Services: services})
			spec := apiregistrationv1.APIServiceSpec{Group: "g.example", Version: "v1", Service: to("ns", "s", e.port()), CABundle: bundleOf(e.cert)}
			if c.change != nil {
				c.change(&spec)
			}
			count := served.Load()
			resp, err := w.RoundTrip(t.Context(), w.put("v1.g.example", spec), &authx.Identity{Name: "ann"}, httptest.NewRequest(http.MethodGet, "/apis/g.example/v1", nil))
			if err == nil {
				resp.Body.Close()
			}
			var resolve *aggregator.ResolveError
			var config *aggregator.ConfigError
			switch before := errors.As(err, &resolve) || errors.As(err, &config); {
			case c.want == "" && (err != nil || served.Load() != count+1):
				t.Errorf("%v, served %d", err, served.Load()-count)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || before != c.before || served.Load() != count):
				t.Errorf("%v (before anything was sent: %v, served %d), want %q", err, before, served.Load()-count, c.want)
			}
		})
	}
}

// TestFailuresReadTheSame: the text of a failure does not name the port from which this server has connected.
func TestFailuresReadTheSame(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
			c.Close() // resets the connection
		}
	})
	defer serving.Wait()
	defer listener.Close()
	w := newWorld(t, aggregator.Config{Services: external("localhost")})
	spec := apiregistrationv1.APIServiceSpec{Group: "g.example", Version: "v1", Service: to("ns", "s", int32(listener.Addr().(*net.TCPAddr).Port)), InsecureSkipTLSVerify: true}
	service := w.put("v1.g.example", spec)
	var texts []string
	for range 2 {
		_, err := w.RoundTrip(t.Context(), service, &authx.Identity{Name: "ann"}, httptest.NewRequest(http.MethodGet, "/apis/g.example/v1", nil))
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("%v, want a reset", err)
		}
		texts = append(texts, err.Error())
	}
	if texts[0] != texts[1] || !strings.Contains(texts[0], listener.Addr().String()) {
		t.Errorf("%q", texts)
	}
}
