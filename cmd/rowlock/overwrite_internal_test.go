package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/server/datadir"
)

// ran returns a command that was run, with what it printed.
func ran(t *testing.T, args ...string) (out, errOut string, err error) {
	t.Helper()
	cmd := command()
	var o, e bytes.Buffer
	cmd.SetArgs(args)
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// TestNothingIsOverwritten: every command that writes a file keeps one that exists, and
// replaces it where that is asked for.
func TestNothingIsOverwritten(t *testing.T) {
	folder := t.TempDir()
	d, err := datadir.Open(filepath.Join(folder, "data"), datadir.Options{ServerURL: "https://127.0.0.1:1", Now: time.Now(), Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	store := "--store=sqlite:" + filepath.Join(folder, "rowlock.db")
	if _, _, err := ran(t, "store", "migrate", store); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]func(file string) []string{
		"store backup":         func(file string) []string { return []string{"store", "backup", file, store} },
		"store export --yaml":  func(file string) []string { return []string{"store", "export", "--yaml", file, store} },
		"export --sql":         func(file string) []string { return []string{"export", "--sql", file, store} },
		"export etcd-snapshot": func(file string) []string { return []string{"export", "etcd-snapshot", file, store} },
		"kubeconfig": func(file string) []string {
			return []string{"kubeconfig", "--data-dir=" + d.Path, "--user=jane", "--output=" + file}
		},
		"envtest archive": func(file string) []string { return []string{"envtest", "archive", file} },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := ran(t, args(file)...)
			if err == nil || !strings.Contains(err.Error(), file+" exists already") || !strings.Contains(err.Error(), "--overwrite") {
				t.Errorf("an existing file: %v", err)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
				t.Errorf("the file is %q now, %v", text, err)
			}
			if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
				t.Errorf("beside the file are %v, %v", left, err)
			}
			if _, _, err := ran(t, append(args(file), "--overwrite")...); err != nil {
				t.Errorf("--overwrite: %v", err)
			}
			if text, err := os.ReadFile(file); err != nil || len(text) == 0 || string(text) == "mine" {
				t.Errorf("--overwrite left the file as %.20q, %v", text, err)
			}
			fresh := filepath.Join(t.TempDir(), "file")
			if _, _, err := ran(t, args(fresh)...); err != nil {
				t.Errorf("a new file: %v", err)
			}
			if _, _, err := ran(t, append(args(filepath.Dir(fresh)), "--overwrite")...); err == nil || !strings.Contains(err.Error(), "is a directory") {
				t.Errorf("a folder: %v", err)
			}
		})
	}
	// A page of history is refused before the cluster is asked, of which there is none.
	file := filepath.Join(folder, "page.html")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ran(t, "history", "deploy/web", "--html", file); err == nil || !strings.Contains(err.Error(), "--html: "+file+" exists already") {
		t.Errorf("history --html: %v", err)
	}
}

// TestEnvtestTwice: laying out again leaves the programs and nothing else.
func TestEnvtestTwice(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		if _, _, err := ran(t, "envtest", "setup", dir); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			switch strings.TrimSuffix(f.Name(), ".exe") {
			case "kube-apiserver", "etcd", "kubectl":
			default:
				t.Errorf("%s was left", f.Name())
			}
		}
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		info, err := os.Stat(filepath.Join(dir, program.Exe(name)))
		if err != nil || info.Mode().Perm()&0o100 == 0 && runtime.GOOS != "windows" || info.Mode()&fs.ModeType != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
