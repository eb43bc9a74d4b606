//go:build unix

package traffic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// key is an encryption key, and its place in an EncryptionConfiguration.
type key struct {
	Provider string `json:"provider"`
	Name     string `json:"name"`
	Secret   string `json:"secret"`
}

// firstKey is the key with which the servers start.
var firstKey = key{"aesgcm", "first", base64.StdEncoding.EncodeToString([]byte("the-first-key-of-the-run-32bytes"))}

// head returns the beginning of each value that the key encrypts.
func (k key) head() string { return "rowlock:enc:1:" + k.inUse() + ":" }

// inUse returns the name of the key in the SQL view history.
func (k key) inUse() string { return k.Provider + ":" + k.Name }

// keyring lists the keys of a server, in the order of its configuration.
type keyring []key

// write replaces a configuration file. The server encrypts Secrets with the first key, and PodTemplates only if templates is true. lines
// adds empty lines at the end, so that the content differs.
func (r keyring) write(path string, templates bool, lines ...int) error {
	var providers []any
	for _, k := range r {
		providers = append(providers, map[string]any{k.Provider: map[string]any{"keys": []any{map[string]any{"name": k.Name, "secret": k.Secret}}}})
	}
	plain := map[string]any{"identity": map[string]any{}}
	of := append([]any{plain}, providers...)
	if templates {
		of = append(providers[:len(providers):len(providers)], plain)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration", "resources": []any{
		map[string]any{"resources": []string{"secrets"}, "providers": providers}, map[string]any{"resources": []string{"podtemplates"}, "providers": of}}})
	if err != nil {
		return err
	}
	for _, n := range append(lines, 1) {
		text = append(text, strings.Repeat("\n", n)...)
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// ringFile is the name of the file that keeps the keyring of the servers for the next round.
const ringFile = "ring.json"

// readRing returns the keys that the servers have.
func readRing(folder string) (keyring, error) {
	text, err := os.ReadFile(filepath.Join(folder, ringFile))
	if errors.Is(err, fs.ErrNotExist) {
		return keyring{firstKey}, nil
	}
	var r keyring
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

func (r keyring) save(folder string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, ringFile), text, 0o600)
}

// with returns the keys followed by the others that are not among them.
func (r keyring) with(others ...key) keyring {
	all := slices.Clone(r)
	for _, k := range others {
		if !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

// allKeys is the folder with the keyring of all keys of the run.
const allKeys = "all-keys"

// keep adds keys to the file with all keys, which commands need to read the database.
func (c *client) keep(all keyring) error {
	folder := filepath.Join(c.c.Dir(), allKeys)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	known, err := readRing(folder)
	if err != nil {
		return err
	}
	known = known.with(all...)
	if err := known.save(folder); err != nil {
		return err
	}
	return known.write(c.c.KeyFile(), true)
}

// present returns the keys that the servers have or need: the database may have lost what a rewrite had encrypted.
func (c *client) present(ctx context.Context) (keyring, error) {
	ring, err := readRing(c.c.Dir())
	if err != nil {
		return nil, err
	}
	all, err := readRing(filepath.Join(c.c.Dir(), allKeys))
	if err != nil {
		return nil, err
	}
	if used, err := c.c.KeysInUse(ctx, "secrets"); err == nil { // otherwise the database may need all of them
		all = slices.DeleteFunc(all, func(k key) bool { return !slices.Contains(used, k.inUse()) })
	}
	return ring.with(all...), nil
}
