package external_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/externaljwt/apis/v1alpha1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/authx/serviceaccount/external"
	"github.com/rowlock/rowlock/authx/serviceaccount/external/signertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const issuer = "https://issuer"

// there finds every account.
type there struct{}

func (there) Object(context.Context, string, string, string) (serviceaccount.Object, bool, error) {
	return serviceaccount.Object{UID: "u"}, true, nil
}

func (there) Secret(context.Context, string, string) (serviceaccount.Secret, bool, error) {
	return serviceaccount.Secret{}, false, nil
}

func open(t *testing.T, s *signertest.Signer, change func(*external.Config)) *external.Signer {
	t.Helper()
	cfg := external.Config{Socket: s.Serve(t), Timeout: time.Minute, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	signer, err := external.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = signer.Close() })
	return signer
}

func issue(t *testing.T, signer *external.Signer) (string, error) {
	t.Helper()
	now := time.Now()
	token, _, err := serviceaccount.NewSigner(issuer, signer).Issue(t.Context(), &authx.Grant{
		Namespace: "n", Account: authx.Ref{Name: "a", UID: "u"}, Audiences: []string{issuer}, Issued: now, Expires: now.Add(time.Hour),
	})
	return token, err
}

func judge(signer *external.Signer) *serviceaccount.Authenticator {
	return serviceaccount.New(serviceaccount.Config{Issuers: []string{issuer}, Keys: signer, Audiences: []string{issuer}, Lookup: there{}})
}

func good(t *testing.T, signer *external.Signer, token string) {
	t.Helper()
	who, ok, err := judge(signer).AuthenticateToken(t.Context(), token, nil)
	if err != nil || !ok || who.Identity.Name != "system:serviceaccount:n:a" {
		t.Errorf("%v, %v, %v", who, ok, err)
	}
}

// TestRotation: a token is good, and stays good when another key signs, which is asked for
// as soon as a token names it.
func TestRotation(t *testing.T) {
	s := signertest.New(t, "first")
	signer := open(t, s, nil)
	first, err := issue(t, signer)
	if err != nil {
		t.Fatal(err)
	}
	good(t, signer, first)
	asked := s.Calls("FetchKeys")
	s.Rotate(t, "second")
	second, err := issue(t, signer)
	if err != nil {
		t.Fatal(err)
	}
	good(t, signer, second)
	good(t, signer, first)
	if n := s.Calls("FetchKeys"); n != asked+1 {
		t.Errorf("asked for keys %d times more", n-asked)
	}
	if signer.Longest() != 24*time.Hour {
		t.Error(signer.Longest())
	}
	// While the signer is away nothing is signed, and what it signed stays good.
	s.Stop()
	good(t, signer, second)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := signer.Sign(ctx, []byte("{}")); err == nil {
		t.Error("a signer is available")
	}
	s.Start(t)
	if _, err := issue(t, signer); err != nil {
		t.Error(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(signer.Metrics().Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	signed := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "apiserver_externaljwt_sign_request_total" {
			for _, m := range f.GetMetric() {
				signed[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if len(families) != 5 || signed["OK"] != 3 || len(signed) != 2 {
		t.Errorf("%d families, %v", len(families), signed)
	}
}

// TestRetired: a token is accepted, and a request that lasts may go on, while the signer publishes the key of its token, or cannot be asked.
func TestRetired(t *testing.T) {
	s := signertest.New(t, "first")
	signer := open(t, s, nil)
	token, err := issue(t, signer)
	if err != nil {
		t.Fatal(err)
	}
	judge := judge(signer)
	who, ok, err := judge.AuthenticateToken(t.Context(), token, nil)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	valid := func(when string, want bool) {
		t.Helper()
		if got := who.StillValid(t.Context()); got != want {
			t.Errorf("%s: the token is valid: %t", when, got)
		}
		// A new request with it, which was accepted a moment ago.
		if _, _, err := judge.AuthenticateToken(t.Context(), token, nil); (err == nil) != want {
			t.Errorf("%s: a request with the token: %v", when, err)
		}
	}
	valid("at first", true)
	s.Rotate(t, "second")
	if _, err := issue(t, signer); err != nil { // which fetches the keys
		t.Fatal(err)
	}
	valid("after another key came", true)
	s.Retire("first")
	s.Stop()
	valid("while the signer is away", true)
	s.Start(t)
	s.Rotate(t, "third")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := issue(t, signer); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	valid("after the key went", false)
}

// TestStrangers: however many tokens name unknown keys, the signer is asked once a second. A key
// that another server's tokens name is asked for all the same.
func TestStrangers(t *testing.T) {
	s := signertest.New(t, "first")
	var socket string
	signer := open(t, s, func(cfg *external.Config) { socket = cfg.Socket })
	asked, began := s.Calls("FetchKeys"), time.Now()
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			header := base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(`{"alg":"ES256","kid":"made up %d"}`, i)))
			payload := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"` + issuer + `"}`))
			if _, ok, err := judge(signer).AuthenticateToken(t.Context(), header+"."+payload+".AAAA", nil); !ok || err == nil {
				t.Error("a forged token is not refused")
			}
		})
	}
	group.Wait()
	if n := s.Calls("FetchKeys") - asked; n > 1+int(time.Since(began)/time.Second) {
		t.Errorf("asked %d times", n)
	}
	s.Rotate(t, "second")
	another, err := external.Open(t.Context(), external.Config{Socket: socket, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = another.Close() }()
	token, err := issue(t, another)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, ok, err := judge(signer).AuthenticateToken(t.Context(), token, nil); ok && err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the new key is not asked for")
		}
	}
}

// TestStall: while the signer does not return its keys, a bounded number of tokens that name
// unknown keys wait for it.
func TestStall(t *testing.T) {
	s := signertest.New(t, "first")
	signer := open(t, s, nil)
	asked, on := s.Calls("FetchKeys"), make(chan struct{})
	s.SetBehavior(signertest.Behavior{Stalls: on})
	const strangers, places = 300, 256
	ended := make(chan int, strangers)
	go func() { // the first of them waits, once it is time to ask again
		found := 0
		for ; s.Calls("FetchKeys") == asked; time.Sleep(10 * time.Millisecond) {
			found = len(signer.Find(t.Context(), "made up"))
		}
		ended <- found
	}()
	for deadline := time.Now().Add(time.Minute); s.Calls("FetchKeys") == asked; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("keys are not asked for")
		}
	}
	for i := range strangers - 1 {
		go func() { ended <- len(signer.Find(t.Context(), fmt.Sprint("made up ", i))) }()
	}
	for range strangers - places {
		<-ended
	}
	select {
	case <-ended:
		t.Error("one that had a place did not wait")
	default:
	}
	close(on)
	for range places {
		if <-ended > 0 {
			t.Error("an unknown key is found")
		}
	}
}

// TestHeaders: a signer that writes more into a token than it may does not get it out.
func TestHeaders(t *testing.T) {
	s := signertest.New(t, "first")
	signer := open(t, s, nil)
	for name, c := range map[string]struct {
		manner signertest.Behavior
		want   string
	}{
		"type":         {signertest.Behavior{Header: map[string]any{"typ": "at+jwt"}}, "bad type"},
		"no key":       {signertest.Behavior{Header: map[string]any{"kid": ""}}, "key id missing"},
		"long key":     {signertest.Behavior{Header: map[string]any{"kid": strings.Repeat("k", 1025)}}, "key id longer than 1 kb"},
		"algorithm":    {signertest.Behavior{Header: map[string]any{"alg": "none"}}, `bad signing algorithm "none"`},
		"more":         {signertest.Behavior{Header: map[string]any{"jku": "https://elsewhere"}}, "it has more than alg, kid and typ"},
		"no texts":     {signertest.Behavior{Header: map[string]any{"alg": 1}}, "it is no object of texts"},
		"no signature": {signertest.Behavior{Naked: true}, "empty signature returned"},
		"an error":     {signertest.Behavior{Err: status.Error(codes.PermissionDenied, "no")}, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			s.SetBehavior(c.manner)
			if token, err := issue(t, signer); err == nil || token != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
}

// TestHidden: a key that others cannot find signs no tokens, and verifies those that it signed.
func TestHidden(t *testing.T) {
	s := signertest.New(t, "old")
	var documents *serviceaccount.Published
	signer := open(t, s, func(cfg *external.Config) {
		documents = serviceaccount.Publish(issuer, issuer+serviceaccount.KeysPath)
		cfg.Changed = func(keys []serviceaccount.Key, until time.Time) {
			if err := documents.Set(keys, until); err != nil {
				t.Error(err)
			}
		}
	})
	published := func() (ids []string, keep string) {
		w := httptest.NewRecorder()
		documents.Documents()[serviceaccount.KeysPath].ServeHTTP(w, nil)
		var set struct{ Keys []struct{ Kid string } }
		if err := json.Unmarshal(w.Body.Bytes(), &set); err != nil {
			t.Fatal(err)
		}
		for _, k := range set.Keys {
			ids = append(ids, k.Kid)
		}
		return ids, w.Header().Get("Cache-Control")
	}
	ids, keep := published()
	if fmt.Sprint(ids) != "[old]" || keep != "public, max-age=3599" && keep != "public, max-age=3600" && !strings.HasPrefix(keep, "public, max-age=35") {
		t.Error(ids, keep)
	}
	old, err := issue(t, signer)
	if err != nil {
		t.Fatal(err)
	}
	s.SetBehavior(signertest.Behavior{Hidden: map[string]bool{"old": true, "older": true}})
	s.Rotate(t, "new")
	if _, err := issue(t, signer); err != nil { // and asks for keys, as "new" is new
		t.Fatal(err)
	}
	if ids, _ := published(); fmt.Sprint(ids) != "[new]" {
		t.Error(ids)
	}
	good(t, signer, old)
	s.Rotate(t, "older")
	if _, err := issue(t, signer); err == nil || !strings.Contains(err.Error(), "key used for signing JWT (kid: older) is excluded from OIDC discovery docs") {
		t.Error(err)
	}
}

// TestRun: keys are fetched after the refresh hint of the signer, and once it answers again.
func TestRun(t *testing.T) {
	s := signertest.New(t, "first")
	s.SetBehavior(signertest.Behavior{Hint: 1})
	signer := open(t, s, nil)
	asked := s.Calls("FetchKeys")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- signer.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); s.Calls("FetchKeys") == asked; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("keys are not asked for anew")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestOpen: the answers that a signer must give before a server starts.
func TestOpen(t *testing.T) {
	for name, c := range map[string]struct {
		manner signertest.Behavior
		want   string
	}{
		"short lives":  {signertest.Behavior{Longest: 599}, "max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)"},
		"no hint":      {signertest.Behavior{Hint: -1}, "found invalid refresh hint (-1s)"},
		"no id":        {signertest.Behavior{Keys: &v1alpha1.Key{Key: []byte("k")}}, `found invalid public key id ""`},
		"no key":       {signertest.Behavior{Keys: &v1alpha1.Key{KeyId: "k"}}, "found empty public key"},
		"a broken key": {signertest.Behavior{Keys: &v1alpha1.Key{KeyId: "k", Key: []byte("k")}}, "while parsing external public keys"},
		"another sort": {signertest.Behavior{Keys: &v1alpha1.Key{KeyId: "first", Key: ed25519Key}}, "want an RSA key"},
		"not allowed":  {signertest.Behavior{Err: status.Error(codes.PermissionDenied, "no")}, "PermissionDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := signertest.New(t, "first")
			s.SetBehavior(c.manner)
			_, err := external.Open(t.Context(), external.Config{Socket: s.Serve(t), Log: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := external.Open(ctx, external.Config{Socket: t.TempDir() + "/nobody", Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("nobody listens, and it opens")
	}
}

// ed25519Key is a public key of a sort that signs no tokens.
var ed25519Key = append([]byte{0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00}, make([]byte, 32)...)
