// Package credential makes the credentials that an exec credential plugin returns to clients: tokens of
// service accounts, and client certificates that a machine obtains with its bootstrap token.
//
// A credential that stays valid for a while is cached on disk, in a file that only its owner can read; one
// that is about to expire, or that the server rejects, is fetched again.
package credential

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
)

// Credential is a token, or a certificate and its key, both as PEM.
type Credential struct {
	Token       string    `json:"token,omitempty"`
	Certificate string    `json:"certificate,omitempty"`
	Key         string    `json:"key,omitempty"`
	Issued      time.Time `json:"issued"`
	Expires     time.Time `json:"expires"`
}

// fresh reports whether a credential has a fifth of its life left.
func (c *Credential) fresh(now time.Time) bool {
	return now.Before(c.Expires.Add(-c.Expires.Sub(c.Issued) / 5))
}

// Source fetches a credential from a server.
type Source interface {
	// ID identifies the source, along with the server.
	ID() string
	Fetch(ctx context.Context, s *Server) (*Credential, error)
}

// Server is an API server, spoken to with the credential that is there already.
type Server struct {
	cfg    *rest.Config
	client *http.Client
	url    string
	now    func() time.Time
}

// Connect uses a client configuration.
func Connect(cfg *rest.Config) (*Server, error) {
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	client.Timeout = cmp.Or(client.Timeout, 30*time.Second)
	url := strings.TrimSuffix(cfg.Host, "/")
	if !strings.Contains(url, "://") {
		url = "https://" + url
	}
	return &Server{cfg: cfg, client: client, url: url, now: time.Now}, nil
}

// refuses reports whether the server no longer accepts a credential. A server that cannot be reached refuses
// nothing.
func (s *Server) refuses(ctx context.Context, c *Credential) bool {
	cfg := rest.AnonymousClientConfig(s.cfg)
	cfg.BearerToken, cfg.CertData, cfg.KeyData = c.Token, []byte(c.Certificate), []byte(c.Key)
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return true // it makes no sense
	}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/version", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(r)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusUnauthorized
}

// call makes one request. body may be nil.
func (s *Server) call(ctx context.Context, method, path string, body, into any) error {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		var status metav1.Status
		if json.Unmarshal(answer, &status) == nil && status.Message != "" {
			return errors.New(status.Message)
		}
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return json.Unmarshal(answer, into)
}

// Get returns the credential of a source: from the folder cache if it is still fresh
// there, else from the server. An empty folder name keeps nothing.
func Get(ctx context.Context, source Source, s *Server, cache string) (*Credential, error) {
	sum := sha256.Sum256([]byte(s.url + "\x00" + source.ID()))
	path := filepath.Join(cache, hex.EncodeToString(sum[:])+".json")
	if cache != "" {
		if c, err := load(path); err == nil && c.fresh(s.now()) && !s.refuses(ctx, c) {
			return c, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	c, err := source.Fetch(ctx, s)
	if err != nil {
		return nil, err
	}
	if cache != "" {
		if err := store(path, c); err != nil {
			return nil, fmt.Errorf("keeping the credential: %w", err)
		}
	}
	return c, nil
}

// load reads a cached credential. It ignores one that others could have read or written, or that is invalid.
func load(path string) (*Credential, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fs.ErrNotExist
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Credential{}
	if json.Unmarshal(data, c) != nil || c.Token == "" && (c.Certificate == "" || c.Key == "") {
		return nil, fs.ErrNotExist
	}
	return c, nil
}

func store(path string, c *Credential) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once renamed, as it should
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ExecInfo is the environment variable with which a client passes its request to a plugin.
const ExecInfo = "KUBERNETES_EXEC_INFO"

// ParseInfo reads the value of ExecInfo; an empty one means v1.
func ParseInfo(text string) (*clientauthentication.ExecCredential, error) {
	info := &clientauthentication.ExecCredential{}
	if text == "" {
		info.APIVersion = "client.authentication.k8s.io/v1"
		return info, nil
	}
	if err := json.Unmarshal([]byte(text), info); err != nil {
		return nil, fmt.Errorf("%s: %w", ExecInfo, err)
	}
	if v := info.APIVersion; info.Kind != "ExecCredential" || v != "client.authentication.k8s.io/v1" && v != "client.authentication.k8s.io/v1beta1" {
		return nil, fmt.Errorf("%s: %s %s is not an ExecCredential of v1 or v1beta1", ExecInfo, info.APIVersion, info.Kind)
	}
	return info, nil
}

// Write writes a credential for the client, in the version that it requested.
func Write(out io.Writer, version string, c *Credential) error {
	expires := metav1.NewTime(c.Expires)
	return json.NewEncoder(out).Encode(&clientauthentication.ExecCredential{
		TypeMeta: metav1.TypeMeta{Kind: "ExecCredential", APIVersion: version},
		Status: &clientauthentication.ExecCredentialStatus{
			ExpirationTimestamp: &expires, Token: c.Token, ClientCertificateData: c.Certificate, ClientKeyData: c.Key,
		},
	})
}
