package datadir

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func open(t *testing.T, path string, now time.Time, ips ...net.IP) *Dir {
	t.Helper()
	d, err := Open(path, Options{ServerURL: "https://127.0.0.1:6443", Now: now, IPs: ips})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func contents(t *testing.T, d *Dir) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(d.Path, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

func TestFirstAndLaterStarts(t *testing.T) {
	now := time.Now()
	path := filepath.Join(t.TempDir(), "data")
	d := open(t, path, now)
	first := contents(t, d)
	if len(first) != 9 {
		t.Fatalf("files: %d", len(first))
	}
	if info, _ := os.Stat(path); info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("folder is %v", info.Mode())
	}
	for name := range first {
		if info, _ := os.Stat(filepath.Join(path, name)); info.Mode() != 0o600 {
			t.Errorf("%s is %v", name, info.Mode())
		}
	}
	open(t, path, now.Add(time.Hour))
	for name, data := range contents(t, d) {
		if first[name] != data {
			t.Errorf("%s changed on the second start", name)
		}
	}
}

func TestRenewal(t *testing.T) {
	now := time.Now()
	path := filepath.Join(t.TempDir(), "data")
	d := open(t, path, now)
	before := contents(t, d)
	open(t, path, now.Add(leafLife*2/3+time.Hour))
	after := contents(t, d)
	for name, changed := range map[string]bool{"ca.crt": false, "serving.crt": true, "admin.crt": true, "admin.kubeconfig": true, "service-account.key": false} {
		if (before[name] != after[name]) != changed {
			t.Errorf("%s: changed = %v", name, !changed)
		}
	}
	// A new address needs a new serving certificate, and that alone.
	open(t, path, now.Add(leafLife*2/3+2*time.Hour), net.IPv4(192, 0, 2, 7))
	last := contents(t, d)
	if last["serving.crt"] == after["serving.crt"] || last["admin.crt"] != after["admin.crt"] {
		t.Error("serving certificate does not follow the addresses")
	}
	if _, err := tls.LoadX509KeyPair(d.ServingCert, d.ServingKey); err != nil {
		t.Error(err)
	}
}

func TestBrokenFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d := open(t, path, time.Now())
	if err := os.Remove(d.CAKey); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Options{Now: time.Now()}); err == nil {
		t.Fatal("a CA without its key was accepted")
	}
}

// TestDatabases: a database that was in use is not begun anew by itself.
func TestDatabases(t *testing.T) {
	d := open(t, t.TempDir(), time.Now())
	folder := d.Path
	first, second := filepath.Join(folder, "a.db"), filepath.Join(folder, "b.db")
	for _, path := range []string{first, second} {
		if err := d.Expect(path); err != nil {
			t.Errorf("before its first use: %v", err)
		}
		if err := os.WriteFile(path, []byte("anything"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Used(path), d.Used(path), d.Expect(path)); err != nil {
			t.Fatal(err)
		}
	}
	var missing *MissingError
	if err := os.Remove(first); err != nil || !errors.As(d.Expect(first), &missing) || missing.Path != first || !missing.Used {
		t.Errorf("a database that is gone: %v %v", err, missing)
	}
	if err := d.Expect(second); err != nil {
		t.Error(err)
	}
}

// TestKeysAlone: keys that came without their database are not taken for a new folder's.
func TestKeysAlone(t *testing.T) {
	d := open(t, t.TempDir(), time.Now())
	if err := os.Remove(d.usedPath()); err != nil {
		t.Fatal(err)
	}
	d = open(t, d.Path, time.Now())
	var missing *MissingError
	if err := d.Expect(d.Database); !errors.As(err, &missing) || missing.Used {
		t.Errorf("keys without a database: %v", err)
	}
	if err := os.WriteFile(d.Database, nil, 0o600); err != nil || !errors.As(d.Expect(d.Database), &missing) {
		t.Errorf("an empty file: %v", err)
	}
	if err := errors.Join(os.WriteFile(d.Database, []byte("anything"), 0o600), d.Expect(d.Database)); err != nil {
		t.Error(err)
	}
}
