package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// targets returns the servers that -against names: [NAME@]URL[=CREDENTIAL], with commas in
// between. A credential is the path of a kubeconfig, if there is such a file, or a bearer
// token. entries are the parts of the list.
func targets(list string) (all []*target, entries []string, err error) {
	if list == "" {
		return nil, nil, nil
	}
	entries = strings.Split(list, ",")
	for _, entry := range entries {
		t, err := otherTarget(entry)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", bareURLs(entry), err)
		}
		if slices.ContainsFunc(all, func(o *target) bool { return o.name == t.name }) || t.name == "rowlock" {
			return nil, nil, fmt.Errorf("%s: there is another one of the name %s; say NAME@URL", bareURLs(entry), t.name)
		}
		all = append(all, t)
	}
	return all, entries, nil
}

var named = regexp.MustCompile(`^([A-Za-z0-9.+ _-]+)@`)

func otherTarget(entry string) (*target, error) {
	name, rest := "", entry
	if m := named.FindStringSubmatch(entry); m != nil {
		name, rest = m[1], entry[len(m[0]):]
	}
	at, credential, _ := strings.Cut(rest, "=")
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, errors.New("it is no URL of the form https://HOST:PORT")
	}
	t := &target{name: name, url: "https://" + u.Host, tls: &tls.Config{}}
	if t.name == "" {
		t.name = u.Host
	}
	if _, err := os.Stat(credential); err != nil || credential == "" {
		t.token = credential
		return t, nil
	}
	return t, t.readKubeconfig(credential)
}

// readKubeconfig takes the credentials and the authority of its current context.
func (t *target) readKubeconfig(path string) error {
	cfg, err := clientcmd.BuildConfigFromFlags(t.url, path)
	if err != nil {
		return err
	}
	if cfg.ExecProvider != nil || cfg.AuthProvider != nil || cfg.Username != "" {
		return fmt.Errorf("%s: credentials are a certificate or a token here; plugins and passwords are not used", path)
	}
	if t.tls, err = rest.TLSConfigFor(cfg); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if t.tls == nil {
		t.tls = &tls.Config{}
	}
	t.tls.NextProtos = nil // the transport sets its protocols
	t.token = cfg.BearerToken
	if cfg.BearerTokenFile != "" {
		text, err := os.ReadFile(cfg.BearerTokenFile)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		t.token = strings.TrimSpace(string(text))
	}
	return nil
}

// lookBehind finds the processes whose time counts: that of the server, those on this machine
// that it is connected to, and all that they have started. None if it is elsewhere.
func (t *target) lookBehind() {
	t.pids = nil
	u, err := url.Parse(t.url)
	if err != nil || u.Hostname() != "127.0.0.1" && u.Hostname() != "localhost" && u.Hostname() != "::1" {
		return
	}
	port, _ := strconv.Atoi(u.Port())
	for _, pid := range behind(port) {
		t.pids = append(t.pids, descendants(pid)...)
	}
}
