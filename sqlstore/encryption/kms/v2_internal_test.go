package kms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/kms/apis/v2"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption/keys"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms/kmstest"
)

var (
	row   = sqlstore.Key{Resource: "secrets", Namespace: "a", Name: "b"}
	head  = []byte(sqlstore.SealHead("kmsv2", "p"))
	plain = []byte(`{"kind":"Secret"}`)
)

func config(endpoint string) Config {
	return Config{Name: "p", Endpoint: endpoint, Timeout: 10 * time.Second, CacheSize: 10, Metrics: NewMetrics("server"), Log: slog.New(slog.DiscardHandler)}
}

// served returns a provider of version 2 over a socket.
func served(t *testing.T, plugin *kmstest.Plugin, change func(*Config)) *V2 {
	t.Helper()
	cfg := config(plugin.Serve(t))
	if change != nil {
		change(&cfg)
	}
	p, err := NewV2(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// direct is a client without a socket, for tests with a clock of their own.
type direct struct{ api.KeyManagementServiceServer }

func (d direct) Status(ctx context.Context, in *api.StatusRequest, _ ...grpc.CallOption) (*api.StatusResponse, error) {
	return d.KeyManagementServiceServer.Status(ctx, in)
}

func (d direct) Encrypt(ctx context.Context, in *api.EncryptRequest, _ ...grpc.CallOption) (*api.EncryptResponse, error) {
	return d.KeyManagementServiceServer.Encrypt(ctx, in)
}

func (d direct) Decrypt(ctx context.Context, in *api.DecryptRequest, _ ...grpc.CallOption) (*api.DecryptResponse, error) {
	return d.KeyManagementServiceServer.Decrypt(ctx, in)
}

func near(plugin *kmstest.Plugin) *V2 {
	return newV2(config(""), direct{plugin.V2()}, func() error { return nil })
}

func check(t *testing.T, p interface{ Check(context.Context) error }, want string) {
	t.Helper()
	err := p.Check(t.Context())
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Fatalf("%v, want %q", err, want)
	}
}

func seal(t *testing.T, p *V2) []byte {
	t.Helper()
	stored, err := p.Seal(t.Context(), head, row, plain)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(stored, head) || bytes.Contains(stored, []byte("Secret")) {
		t.Fatalf("%q", stored)
	}
	return stored
}

func opens(t *testing.T, p *V2, stored []byte, stale bool) {
	t.Helper()
	got, was, err := p.Open(t.Context(), stored, len(head), row)
	if err != nil || !bytes.Equal(got, plain) || was != stale {
		t.Fatalf("%q, stale %v, %v", got, was, err)
	}
}

// TestV2: many values, one data key; another server asks once for all of them.
func TestV2(t *testing.T) {
	plugin := kmstest.New("one")
	p := served(t, plugin, nil)
	check(t, p, "")
	var stored [][]byte
	for range 20 {
		stored = append(stored, seal(t, p))
		opens(t, p, stored[len(stored)-1], false)
	}
	if n := plugin.Calls("Encrypt"); n != 1 {
		t.Errorf("%d data keys", n)
	}
	other, err := NewV2(config(plugin.Endpoint()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	before := plugin.Calls("Decrypt")
	var wait sync.WaitGroup
	for _, s := range stored {
		wait.Go(func() {
			if got, _, err := other.Open(t.Context(), s, len(head), row); err != nil || !bytes.Equal(got, plain) {
				t.Error(got, err)
			}
		})
	}
	wait.Wait()
	if n := plugin.Calls("Decrypt") - before; n != 1 {
		t.Errorf("%d calls for one data key", n)
	}
	elsewhere := row
	elsewhere.Name = "c"
	if got, _, err := p.Open(t.Context(), stored[0], len(head), elsewhere); !errors.Is(err, keys.ErrBroken) {
		t.Errorf("another row: %q, %v", got, err)
	}
	for at := len(head); at < len(stored[0]); at++ {
		turned := bytes.Clone(stored[0])
		turned[at] ^= 1
		if got, _, err := p.Open(t.Context(), turned, len(head), row); err == nil {
			t.Fatalf("turned at %d: %q", at, got)
		}
	}
	for at := len(head); at < len(stored[0]); at++ {
		if got, _, err := p.Open(t.Context(), stored[0][:at], len(head), row); err == nil {
			t.Fatalf("cut at %d: %q", at, got)
		}
	}
}

// TestRotation: the key in the status seals; values of an older key open, as stale.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := kmstest.New("one")
		p := near(plugin)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		synctest.Wait()
		first := seal(t, p)
		plugin.Rotate("two")
		opens(t, p, first, false) // not known yet
		time.Sleep(everyWell + time.Second)
		opens(t, p, first, true)
		second := seal(t, p)
		opens(t, p, second, false)
		opens(t, near(plugin), first, false) // who knows no key yet calls none old
		if n := plugin.Calls("Encrypt"); n != 2 {
			t.Errorf("%d data keys", n)
		}
		time.Sleep(time.Hour)
		opens(t, p, seal(t, p), false)
		if n := plugin.Calls("Encrypt"); n != 2 {
			t.Errorf("%d data keys after an hour", n)
		}
		stop()
		<-ended
	})
}

// TestOutage: writes continue for three minutes and reads forever; both work again soon after
// the plugin does.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := kmstest.New("one")
		p := near(plugin)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		synctest.Wait()
		stored := seal(t, p)
		plugin.SetBehavior(kmstest.Behavior{Err: status.Error(codes.Unavailable, "gone")})
		time.Sleep(2 * time.Minute)
		check(t, p, "failed to perform status section of the healthz check for KMS Provider p")
		opens(t, p, seal(t, p), false)
		time.Sleep(2 * time.Minute)
		opens(t, p, stored, false)
		if _, err := p.Seal(t.Context(), head, row, plain); !errors.Is(err, sqlstore.ErrKeyUnavailable) || !strings.Contains(err.Error(), "expired at") {
			t.Fatal(err)
		}
		plugin.SetBehavior(kmstest.Behavior{})
		time.Sleep(everyIll + time.Second)
		opens(t, p, seal(t, p), false)
		if n := plugin.Calls("Encrypt"); n != 1 {
			t.Errorf("%d data keys: the old one was good still", n)
		}
		stop()
		<-ended
	})
}

// TestCheckIsKept: however many ask how the plugin is, it is asked now and then.
func TestCheckIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := kmstest.New("one")
		p := near(plugin)
		ask := func(d time.Duration, want string) {
			for range 100 {
				time.Sleep(d / 100)
				check(t, p, want)
			}
		}
		ask(time.Minute, "")
		if n := plugin.Calls("Status"); n > 4 {
			t.Errorf("%d calls in a minute", n)
		}
		plugin.SetBehavior(kmstest.Behavior{Healthz: new("so so")})
		time.Sleep(goodFor)
		ask(30*time.Second, "kmsv2 Provider p is not healthy, error: got unexpected healthz status: so so")
		if n := plugin.Calls("Status"); n > 16 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestLies: nothing is sealed with a data key that the plugin did not encrypt well.
func TestLies(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		manner kmstest.Behavior
		want   string
		sound  bool // it is not well, and what it encrypts is good
	}{
		"no version":         {kmstest.Behavior{Version: new("v3")}, "expected KMSv2 API version v2, got v3", true},
		"long version":       {kmstest.Behavior{Version: new(long[:100000])}, "expected KMSv2 API version v2, got xxx", true},
		"long health":        {kmstest.Behavior{Healthz: new(long[:100000])}, "got unexpected healthz status: xxx", true},
		"no key id":          {kmstest.Behavior{StatusKeyID: new("")}, `got invalid KMSv2 KeyID hash "": keyID is empty`, false},
		"long key id":        {kmstest.Behavior{StatusKeyID: new(long[:1025])}, "keyID is 1025 bytes, which exceeds the max size of 1024", false},
		"another key id":     {kmstest.Behavior{StatusKeyID: new("other")}, "and a data key was encrypted with", false},
		"endless answer":     {kmstest.Behavior{Healthz: &long}, "code = ResourceExhausted", false},
		"no ciphertext":      {kmstest.Behavior{Cipher: []byte{}}, "encrypted DEK source is empty", false},
		"long ciphertext":    {kmstest.Behavior{Cipher: []byte(long[:1025])}, "encrypted DEK source is 1025 bytes", false},
		"naked":              {kmstest.Behavior{Naked: true}, "did not encrypt the data key", false},
		"lost":               {kmstest.Behavior{Cipher: []byte("xyz")}, "no ciphertext of mine", false},
		"other data key":     {kmstest.Behavior{Plain: make([]byte, 32)}, "does not give back the data key", false},
		"no annotation name": {kmstest.Behavior{Annotations: map[string][]byte{"plain": nil}}, "should be a domain with at least two segments separated by dots", false},
		"long annotations":   {kmstest.Behavior{Annotations: map[string][]byte{"a.example.com": []byte(long[:32<<10])}}, "which exceeds the max size of 32768", false},
		"long error":         {kmstest.Behavior{Err: status.Error(codes.Internal, long[:8000])}, "code = Internal", false},
		"endless error":      {kmstest.Behavior{Err: status.Error(codes.Internal, long)}, "code = ", false},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := kmstest.New("one")
			plugin.SetBehavior(c.manner)
			p := served(t, plugin, func(c *Config) { c.Timeout = time.Minute })
			err := p.Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000 {
				t.Fatalf("%.3000v, want %q", err, c.want)
			}
			_, err = p.Seal(t.Context(), head, row, plain)
			if c.sound && err != nil || !c.sound && !errors.Is(err, sqlstore.ErrKeyUnavailable) {
				t.Fatal(err)
			}
		})
	}
}

// TestVersionStays: a plugin does not change its version.
func TestVersionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := kmstest.New("one")
		p := near(plugin)
		check(t, p, "")
		plugin.SetBehavior(kmstest.Behavior{Version: new("v2beta1")})
		time.Sleep(goodFor)
		check(t, p, "should not change after the initial status response version v2, got v2beta1")
	})
}

// TestWrongKeyIsNotKept: a data key that opened nothing is asked for again.
func TestWrongKeyIsNotKept(t *testing.T) {
	plugin := kmstest.New("one")
	p := near(plugin)
	check(t, p, "")
	stored := seal(t, p)
	other := near(plugin)
	for _, lie := range [][]byte{make([]byte, 32), make([]byte, 31), {}} {
		plugin.SetBehavior(kmstest.Behavior{Plain: lie})
		if got, _, err := other.Open(t.Context(), stored, len(head), row); err == nil || errors.Is(err, sqlstore.ErrKeyUnavailable) {
			t.Fatalf("%q, %v", got, err)
		}
	}
	plugin.SetBehavior(kmstest.Behavior{})
	opens(t, other, stored, false)
}

// TestRestart: a plugin that was restarted is found again.
func TestRestart(t *testing.T) {
	plugin := kmstest.New("one")
	p := served(t, plugin, nil)
	check(t, p, "")
	stored := seal(t, p)
	plugin.Stop()
	plugin.Start(t)
	p.known.Clear()
	for {
		_, _, err := p.Open(t.Context(), stored, len(head), row)
		if err == nil {
			return
		}
		if !errors.Is(err, sqlstore.ErrKeyUnavailable) {
			t.Fatal(err)
		}
	}
}

// TestLeaving: a canceled caller does not cancel others.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := kmstest.New("one")
		p := near(plugin)
		check(t, p, "")
		stored := seal(t, p)
		p.known.Clear()
		plugin.SetBehavior(kmstest.Behavior{CallsHang: true})
		ctx, leave := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { _, _, err := p.Open(ctx, stored, len(head), row); first <- err }()
		synctest.Wait()
		go func() { _, _, err := p.Open(t.Context(), stored, len(head), row); second <- err }()
		synctest.Wait()
		if n := plugin.Waiting(); n != 1 {
			t.Fatalf("%d calls for one data key", n)
		}
		plugin.SetBehavior(kmstest.Behavior{})
		leave()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

// TestBounds: data keys in memory and series by key id are no more than so many, however
// many a plugin makes.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plugin := kmstest.New("first")
		p := near(plugin)
		check(t, p, "")
		first := seal(t, p)
		for i := range maxDataKeys + 100 {
			plugin.Rotate(fmt.Sprint("key ", i))
			time.Sleep(goodFor)
			check(t, p, "")
			opens(t, p, seal(t, p), false)
		}
		if n := p.known.Len(); n != maxDataKeys {
			t.Errorf("%d data keys are kept", n)
		}
		before := plugin.Calls("Decrypt")
		opens(t, p, first, true) // forgotten, and asked for again
		if n := plugin.Calls("Decrypt") - before; n != 1 {
			t.Errorf("%d calls", n)
		}
		m := p.cfg.Metrics
		for name, c := range map[string]prometheus.Collector{"used": m.used, "used at": m.usedAt, "said at": m.reportedAt} {
			series := make(chan prometheus.Metric, 10*maxDataKeys)
			c.Collect(series)
			if n := len(series); n > 100 || n < 50 {
				t.Errorf("%s: %d series", name, n)
			}
		}
	})
}

func FuzzOpen(f *testing.F) {
	plugin := kmstest.New("one")
	p := near(plugin)
	if err := p.Check(f.Context()); err != nil {
		f.Fatal(err)
	}
	stored, err := p.Seal(f.Context(), nil, row, plain)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(stored)
	f.Add((&wrapped{keyID: "a", dataKey: []byte("b"), annotations: map[string][]byte{"a.b": []byte("c")}}).append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := p.Open(t.Context(), data, 0, row)
		if bytes.Equal(data, stored) && err != nil || err == nil && !bytes.Equal(got, plain) { // of another process, too
			t.Fatalf("%q, %v", got, err)
		}
		n, err := skip(data)
		if err != nil {
			return
		}
		if w, err := unwrap(data[:n]); err == nil {
			again := w.append(nil)
			if back, err := unwrap(again); err != nil || !bytes.Equal(back.append(nil), again) {
				t.Fatalf("%q, %v", again, err)
			}
		}
	})
}

func BenchmarkV2(b *testing.B) {
	p := near(kmstest.New("one"))
	if err := p.Check(b.Context()); err != nil {
		b.Fatal(err)
	}
	value := bytes.Repeat([]byte("0123456789abcdef"), 64)
	b.ReportAllocs()
	for range b.N {
		stored, err := p.Seal(b.Context(), head, row, value)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := p.Open(b.Context(), stored, len(head), row); err != nil {
			b.Fatal(err)
		}
	}
}
