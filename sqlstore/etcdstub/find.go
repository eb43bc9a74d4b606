package etcdstub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrStranger reports that an etcd answered which is not this package's.
var ErrStranger = errors.New("this is a real etcd, and not the etcd that comes with rowlock")

const (
	// askFor bounds the wait for a process that is just starting.
	askFor   = 10 * time.Second
	askEvery = 20 * time.Millisecond
	maxPlace = 16 << 10 // bytes of an answer that are read
)

// Find asks the processes at URLs for the place of the database. The first answer counts. It retries for a
// while if none can be reached.
func Find(ctx context.Context, urls []string, files TLS) (Place, error) {
	c, err := files.client()
	if err != nil {
		return Place{}, err
	}
	transport := &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	for {
		var failed error
		for _, text := range urls {
			place, err := ask(ctx, client, text)
			if err == nil || !unreached(err) {
				return place, err
			}
			failed = errors.Join(failed, err)
		}
		select {
		case <-ctx.Done():
			return Place{}, fmt.Errorf("no answer: %w", failed)
		case <-time.After(askEvery):
		}
	}
}

// unreached reports whether an error may be gone in a moment, once the process is there.
func unreached(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial" || errors.Is(err, io.EOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// ask asks one process.
func ask(ctx context.Context, client *http.Client, text string) (Place, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Place{}, fmt.Errorf("%q: want http://HOST:PORT or https://HOST:PORT", text)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(u.String(), "/")+placePath, nil)
	if err != nil {
		return Place{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return Place{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPlace))
	if err != nil {
		return Place{}, err
	}
	var p Place
	switch {
	case resp.StatusCode == http.StatusForbidden:
		return p, fmt.Errorf("%s: it answers %q", text, strings.TrimSpace(string(body)))
	case resp.StatusCode != http.StatusOK || json.Unmarshal(body, &p) != nil || p.Seal == "":
		return p, fmt.Errorf("%s: %w", text, ErrStranger)
	}
	return p, p.check(text)
}

// check makes sure that this process sees the same folder as the other one, and that the other one runs as
// the same user: otherwise a process at a wrong address could choose the keys and the database, and the place
// of new files. From then on paths are those without symbolic links.
func (p *Place) check(text string) error {
	dir := filepath.Dir(p.Database)
	if !filepath.IsAbs(dir) || p.Database != filepath.Join(dir, databaseName) || p.Keys != filepath.Join(dir, keysName) {
		return fmt.Errorf("%s: %w", text, ErrStranger)
	}
	folder, err := filepath.EvalSymlinks(dir)
	var seal string
	if err == nil {
		seal, err = readSeal(filepath.Join(folder, placeName), os.Geteuid())
	}
	if err != nil {
		return fmt.Errorf("%s keeps its data in %q, which this process cannot read (is it on the same machine, of the same user?): %w", text, dir, err)
	}
	if seal != p.Seal {
		return fmt.Errorf("%s keeps its data in %q, where this process finds those of another one: is it on the same machine?", text, dir)
	}
	p.Database, p.Keys = filepath.Join(folder, databaseName), filepath.Join(folder, keysName)
	return nil
}

// readSeal reads the file that a process of a user wrote next to the database.
func readSeal(path string, user int) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || !ownedBy(info, user) {
		return "", fmt.Errorf("%s is not a file of this user", path)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// writeSeal writes that file. It does not follow links.
func writeSeal(path, seal string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, seal)
	return errors.Join(err, f.Close())
}
