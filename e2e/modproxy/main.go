// Command modproxy writes the working tree of this repository as a Go module proxy in a folder:
//
//	go run ./e2e/modproxy DIR VERSION
//
// With GOPROXY=file://DIR the go command finds it like any other module. As in a release, folders with
// their own go.mod are left out.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/rowlock/rowlock"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: modproxy DIR VERSION")
		os.Exit(2)
	}
	if err := publish(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// harmless are prefixes of lines of go.mod that may replace a module: they make rowlock's own binary smaller,
// and modules that require this one use the replaced modules (docs/design/size.md).
var harmless = strings.NewReplacer("\nreplace github.com/json-iterator/go =>", "\n")

// publish writes the files of a version in a module proxy.
func publish(dir, version string) error {
	dir = filepath.Join(dir, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return err
	}
	if strings.Contains(harmless.Replace(string(mod)), "\nreplace ") {
		return errors.New("go.mod replaces modules, which those who require this one would not")
	}
	if _, err := os.Stat("LICENSE"); err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":"2000-01-01T00:00:00Z"}`, version)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, version+".info"), []byte(info), 0o644),
		os.WriteFile(filepath.Join(dir, version+".mod"), mod, 0o644),
		pack(filepath.Join(dir, version+".zip"), module+"@"+version),
	)
}

// files returns the files of the module: those that git tracks or would add.
func files() ([]string, error) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	list := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	var nested []string
	for _, name := range list {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			nested = append(nested, path.Dir(name)+"/")
		}
	}
	return slices.DeleteFunc(list, func(name string) bool {
		return slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(name, dir) })
	}), nil
}

func pack(to, root string) (err error) {
	list, err := files()
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := zip.NewWriter(f)
	for _, name := range list {
		info, err := os.Lstat(name)
		if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // deleted and not committed yet; links, which modules do not have
		}
		if err != nil {
			return err
		}
		if err := add(w, root+"/"+name, name); err != nil {
			return err
		}
	}
	return w.Close()
}

func add(w *zip.Writer, as, name string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := w.Create(as)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}
