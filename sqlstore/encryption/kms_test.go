package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms/kmstest"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// kms returns a provider of a file.
func kms(version, name, endpoint string) string {
	return fmt.Sprintf("kms: {apiVersion: %s, name: %s, endpoint: '%s', timeout: 5s}", version, name, endpoint)
}

// running returns a set that is run until the test ends.
func running(t *testing.T, text string, change func(*encryption.Config)) *encryption.Set {
	t.Helper()
	s, err := opened(t, text, change)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return s
}

// value returns that of a series by its labels as "name=value,...", or -1.
func value(t *testing.T, s *encryption.Set, name, labels string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		if !strings.HasPrefix(f.GetHelp(), "[ALPHA] ") {
			t.Errorf("%s: %s", name, f.GetHelp())
		}
		for _, m := range f.GetMetric() {
			var all []string
			for _, l := range m.GetLabel() {
				all = append(all, l.GetName()+"="+l.GetValue())
			}
			if !strings.Contains(strings.Join(all, ","), labels) {
				continue
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return -1
}

func probe(t *testing.T, s *encryption.Set, names, want string) {
	t.Helper()
	var got []string
	var probed error
	for _, c := range s.Checks() {
		got = append(got, c.Name)
		probed = errors.Join(probed, c.Probe(t.Context()))
	}
	if strings.Join(got, " ") != names || want == "" && probed != nil || want != "" && (probed == nil || !strings.Contains(probed.Error(), want)) {
		t.Fatalf("%s: %v, want %s: %q", got, probed, names, want)
	}
}

// TestKMS: both versions seal and open, and count as a stock server does.
func TestKMS(t *testing.T) {
	plugin := kmstest.New("key-1")
	endpoint := plugin.Serve(t)
	allowed := func(c *encryption.Config) { c.KMSv1 = true }
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			text := top + rule("secrets", kms(version, "my-kms", endpoint), none)
			s := running(t, text, allowed)
			stored := seal(t, s, row)
			if !bytes.HasPrefix(stored, []byte("rowlock:enc:1:kms"+version+":my-kms:")) || bytes.Contains(stored, []byte("Secret")) {
				t.Fatalf("%q", stored)
			}
			opens(t, s, row, stored, false)
			other := running(t, text, allowed)
			opens(t, other, row, stored, false)
			refuses(t, s, sqlstore.Key{Resource: "secrets", Name: "c"}, stored, "kms"+version, "my-kms")
			for name, want := range map[string]string{
				"apiserver_storage_transformation_operations_total":            "resource=secrets,status=OK,transformation_type=from_storage,transformer_prefix=rowlock:enc:1:kms" + version + ":",
				"apiserver_storage_transformation_duration_seconds":            "transformation_type=from_storage,transformer_prefix=rowlock:enc:1:kms" + version + ":",
				"apiserver_storage_envelope_transformation_cache_misses_total": "",
				"apiserver_envelope_encryption_kms_operations_latency_seconds": "grpc_status_code=OK,method_name=/" + map[string]string{"v1": "v1beta1", "v2": "v2"}[version] + ".KeyManagementService/Decrypt,provider_name=my-kms",
			} {
				calls := 1.0
				if strings.HasPrefix(want, "grpc") {
					calls = 2 // one of them to see whether the plugin is well
				}
				if got := value(t, other, name, want); got != calls {
					t.Errorf("%s{%s} %v", name, want, got)
				}
			}
			if got := value(t, s, "apiserver_storage_data_key_generation_duration_seconds", ""); got != 1 {
				t.Errorf("%v data keys", got)
			}
			hash := "key_id_hash=sha256:" // of key-1
			for name, want := range map[string]string{
				"apiserver_envelope_encryption_key_id_hash_total":                         "apiserver_id_hash=sha256:server," + hash,
				"apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds":        "apiserver_id_hash=sha256:server," + hash,
				"apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds": "apiserver_id_hash=sha256:server," + hash,
				"apiserver_envelope_encryption_dek_source_cache_size":                     "provider_name=my-kms",
			} {
				if got := value(t, s, name, want); version == "v2" && got < 1 || version == "v1" && got != -1 {
					t.Errorf("%s{%s} %v", name, want, got)
				}
			}
		})
	}
}

// TestKMSv1: a call for each write; the file sets how many data keys are kept.
func TestKMSv1(t *testing.T) {
	plugin := kmstest.New("one")
	text := func(size string) string {
		return top + rule("secrets", "kms: {name: p, endpoint: '"+plugin.Endpoint()+"', cachesize: "+size+"}")
	}
	plugin.Serve(t)
	allowed := func(c *encryption.Config) { c.KMSv1 = true }
	for size, want := range map[string]int{"2": 6, "-1": 16, "100": 0} {
		s := running(t, text(size), allowed)
		probe(t, s, "kms-provider-0", "")
		var stored [][]byte
		before := plugin.Calls("Encrypt")
		for range 8 {
			stored = append(stored, seal(t, s, row))
		}
		if n := plugin.Calls("Encrypt") - before; n != 8 {
			t.Errorf("cache of %s: %d calls for 8 writes", size, n)
		}
		before = plugin.Calls("Decrypt")
		for i := range stored {
			opens(t, s, row, stored[len(stored)-1-i], false)
			opens(t, s, row, stored[len(stored)-1-i], false)
		}
		if n := plugin.Calls("Decrypt") - before; n != want {
			t.Errorf("cache of %s: %d calls for 16 reads, want %d", size, n, want)
		}
	}
	for name, c := range map[string]struct {
		manner kmstest.Behavior
		want   string
	}{
		"version":   {kmstest.Behavior{Version: new("v9")}, "KMS provider api version v9 is not supported, only v1beta1 is supported now"},
		"no cipher": {kmstest.Behavior{Cipher: []byte{}}, "failed to perform encrypt section of the healthz check for KMS Provider p, error: the plugin answered with nothing"},
		"naked":     {kmstest.Behavior{Naked: true, Plain: []byte("ping")}, ""},
		"refuses":   {kmstest.Behavior{Refuse: status.Error(codes.NotFound, "lost")}, "failed to perform decrypt section of the healthz check for KMS Provider p"},
		"lies":      {kmstest.Behavior{Plain: []byte("pong")}, "does not give back what it encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			plugin.SetBehavior(c.manner)
			defer plugin.SetBehavior(kmstest.Behavior{})
			s := running(t, text("5"), allowed)
			probe(t, s, "kms-provider-0", c.want)
			stored, err := s.Seal(t.Context(), row, []byte(plain))
			var failed *sqlstore.SealError
			switch decrypts := name == "refuses" || name == "lies"; {
			case decrypts != (err == nil), err != nil && !errors.As(err, &failed):
				t.Fatalf("%q, %v", stored, err)
			}
		})
	}
}

// TestChecks: the names of the plugins' checks; one that hangs stops no other.
func TestChecks(t *testing.T) {
	well, ill := kmstest.New("one"), kmstest.New("one")
	a, b := well.Serve(t), ill.Serve(t)
	two := top + rule("secrets", kms("v2", "a", a), kms("v2", "b", b))
	mixed := top + rule("secrets", kms("v2", "a", a), kms("v1", "c", b))
	gone := "kms: {apiVersion: v2, name: gone, endpoint: 'unix:///nowhere', timeout: 50ms}"
	probe(t, set(t, top+rule("secrets", none)), "", "")
	for _, c := range []struct {
		text        string
		reload      bool
		names, want string
	}{
		{two, false, "kms-providers", ""},
		{mixed, false, "kms-provider-0 kms-provider-1", ""},
		{mixed, true, "kms-providers", ""},
		{top + rule("secrets", none), true, "kms-providers", ""},
		{top + rule("secrets", kms("v2", "a", a), gone), false, "kms-providers", "kms-provider-1: failed to perform status section of the healthz check for KMS Provider gone"},
	} {
		s, err := opened(t, c.text, func(cfg *encryption.Config) { cfg.Reload, cfg.KMSv1 = c.reload, true })
		if err != nil {
			t.Fatal(err)
		}
		probe(t, s, c.names, c.want)
	}
	s := running(t, top+rule("secrets", kms("v2", "a", a))+rule("configmaps", "kms: {apiVersion: v2, name: b, endpoint: '"+b+"', timeout: 1h}"), nil)
	stored := seal(t, s, row)
	second, err := opened(t, top+rule("secrets", kms("v2", "a", a))+rule("configmaps", "kms: {apiVersion: v2, name: b, endpoint: '"+b+"', timeout: 1h}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	others := sqlstore.Key{Resource: "configmaps", Name: "x"}
	held := seal(t, s, others)
	ill.SetBehavior(kmstest.Behavior{Hang: true})
	ctx, leave := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			if _, _, err := second.Open(ctx, sqlstore.Key{Resource: "configmaps", Name: "x"}, held[:len(held)-1]); err == nil {
				t.Error("a cut value opens")
			}
		})
	}
	opens(t, second, row, stored, false)
	leave()
	wait.Wait()
}

// TestReload: a file that rotates from one provider to another, during reads and writes.
func TestReload(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New("one")
	endpoint := plugin.Serve(t)
	var path string
	log := &storetest.Log{}
	first := top + rule("secrets", with("aescbc", "one", locals["aescbc"]), none)
	s := running(t, first, func(c *encryption.Config) {
		path, c.Reload, c.Every, c.Log = c.Path, true, 5*time.Millisecond, log.Logger()
	})
	probe(t, s, "kms-providers", "")
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			stored := seal(t, s, row)
			for ctx.Err() == nil {
				got, _, err := s.Open(context.Background(), row, stored)
				if err != nil || string(got) != plain {
					t.Error(string(got), err)
					return
				}
				if stored, err = s.Seal(context.Background(), row, got); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	old := seal(t, s, row)
	reloads := func(status string, least float64) {
		t.Helper()
		for value(t, s, "apiserver_encryption_config_controller_automatic_reloads_total", "apiserver_id_hash=sha256:server,status="+status) < least {
			time.Sleep(time.Millisecond)
		}
		if at := value(t, s, "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds", "status="+status); at < 1e9 {
			t.Error(at)
		}
	}
	sealedBy := func(want string) {
		t.Helper()
		if provider, _, _, _ := sqlstore.SealedBy(seal(t, s, row)); provider != want {
			t.Fatalf("sealed by %q, want %q", provider, want)
		}
	}

	write(t, path, first+"- nonsense: yes\n")
	reloads("failure", 1)
	sealedBy("aescbc")
	write(t, path, top+rule("secrets", with("aescbc", "one", locals["aescbc"]), kms("v2", "p", endpoint), none))
	reloads("success", 1)
	write(t, path, top+rule("secrets", kms("v2", "p", endpoint), with("aescbc", "one", locals["aescbc"]), none))
	reloads("success", 2)
	sealedBy("kmsv2")
	opens(t, s, row, old, true)
	probe(t, s, "kms-providers", "")

	plugin.SetBehavior(kmstest.Behavior{Healthz: new("not now")})
	asked := plugin.Calls("Status")
	write(t, path, top+rule("secrets", kms("v2", "q", endpoint), kms("v2", "p", endpoint), with("aescbc", "one", locals["aescbc"])))
	for plugin.Calls("Status") < asked+2 { // both of the new file, which is not taken over while they are not well
		time.Sleep(time.Millisecond)
	}
	if _, name, _, _ := sqlstore.SealedBy(seal(t, s, row)); name != "p" {
		t.Fatal(name)
	}
	plugin.SetBehavior(kmstest.Behavior{})
	reloads("success", 3)
	if _, name, _, _ := sqlstore.SealedBy(seal(t, s, row)); name != "q" {
		t.Fatal(name)
	}
	stop()
	wait.Wait()
	write(t, path, top+rule("configmaps", none))
	reloads("success", 4)
	if !s.Covers("secrets") || !s.Covers("configmaps") || s.Covers("pods") {
		t.Error("values of a resource whose rule was taken away may still be encrypted")
	}
	if text := log.String(); !strings.Contains(text, "cannot be used; the one before stays") || strings.Contains(text, locals["aescbc"]) {
		t.Error(text)
	}
}

// TestStartWithoutPlugin: values cannot be written or read before the plugin is there,
// which is no fault of theirs; then they can.
func TestStartWithoutPlugin(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New("one")
	endpoint := plugin.Serve(t)
	waits := func(timeout string) string {
		return top + rule("secrets", "kms: {apiVersion: v2, name: p, endpoint: '"+endpoint+"', timeout: "+timeout+"}")
	}
	stored := seal(t, set(t, waits("1m")), row) // the plugin is there, however slow the machine
	plugin.Stop()
	text := waits("200ms")
	s := running(t, text, nil)
	if _, err := s.Seal(t.Context(), row, []byte(plain)); !errors.Is(err, sqlstore.ErrKeyUnavailable) {
		t.Fatal(err)
	}
	_, _, err := s.Open(t.Context(), row, stored)
	var unseal *sqlstore.UnsealError
	if !errors.As(err, &unseal) || !errors.Is(err, sqlstore.ErrKeyUnavailable) {
		t.Fatal(err)
	}
	if n := value(t, s, "apiserver_storage_transformation_operations_total", "resource=secrets,status=Unavailable") + value(t, s, "apiserver_storage_transformation_operations_total", "resource=secrets,status=DeadlineExceeded"); n != 0 { // 1, and -1 for the other
		t.Error(n)
	}
	plugin.Start(t)
	for {
		if _, _, err := s.Open(t.Context(), row, stored); err == nil {
			break
		} else if !errors.Is(err, sqlstore.ErrKeyUnavailable) {
			t.Fatal(err)
		}
	}
	for s.Checks()[0].Probe(t.Context()) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	opens(t, s, row, seal(t, s, row), false)
}

// TestOldConnections: those of an older file are closed in a while, and not at once.
func TestOldConnections(t *testing.T) {
	t.Parallel()
	plugin := kmstest.New("one")
	endpoint := plugin.Serve(t)
	text := func(name, timeout string) string {
		return top + rule("secrets", "kms: {apiVersion: v2, name: "+name+", endpoint: '"+endpoint+"', timeout: "+timeout+"}")
	}
	var path string
	s := running(t, text("a", "1h"), func(c *encryption.Config) { path, c.Reload, c.Every = c.Path, true, 5*time.Millisecond })
	until := func(name string) {
		t.Helper()
		for {
			if _, now, _, _ := sqlstore.SealedBy(seal(t, s, row)); now == name {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	until("a")
	write(t, path, text("b", "1s"))
	until("b")
	write(t, path, text("c", "1s"))
	until("c")
	for plugin.Connections() != 2 { // that of b is closed, that of a is not
		time.Sleep(time.Millisecond)
	}
	const latency, cached, said = "apiserver_envelope_encryption_kms_operations_latency_seconds", "apiserver_envelope_encryption_dek_source_cache_size", "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds"
	for _, name := range []string{latency, cached, said} {
		for value(t, s, name, "provider_name=b") != -1 { // until its series are dropped
			time.Sleep(time.Millisecond)
		}
		for _, stays := range []string{"a", "c"} {
			if got := value(t, s, name, "provider_name="+stays); got <= 0 {
				t.Errorf("%s of %s is %v", name, stays, got)
			}
		}
	}
	time.Sleep(100 * time.Millisecond) // that of a stays, however long one waits
	if n := plugin.Connections(); n != 2 {
		t.Errorf("%d connections", n)
	}
}

// TestUnknownPath: no file, no start.
func TestUnknownPath(t *testing.T) {
	_, err := encryption.Open(t.Context(), encryption.Config{Path: filepath.Join(t.TempDir(), "none")})
	if err == nil || !strings.Contains(err.Error(), "error reading encryption provider configuration file") {
		t.Error(err)
	}
}
