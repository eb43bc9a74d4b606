// Package webhook posts JSON to webhooks: services that a cluster's objects name, by
// URL or as a Service of the cluster.
//
// It promises: TLS always, checked against the bundle of the webhook or the system's
// roots; connections are kept and used again; an answer is read up to a limit and no
// further; redirects are not followed; errors name the webhook's address, never a
// credential or a body that is no text.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
	sigsjson "sigs.k8s.io/json"
)

// Target is a webhook: a URL or a Service, and the PEM certificates of its authorities (none: those of the
// system).
type Target struct {
	URL      string
	Service  Service // where URL is empty
	CABundle string
}

// Service is a webhook in the cluster.
type Service struct {
	Namespace, Name, Path string
	Port                  int32
}

// Limits of a client.
const (
	maxAnswer  = 8 << 20
	maxQuote   = 2048 // bytes of an answer in an error
	maxClients = 200
	idle       = 90 * time.Second
	perTarget  = 64 // idle connections
)

// Client posts to webhooks. It is safe for concurrent use.
type Client struct {
	// Resolve finds the host and port to connect to for a Service.
	Resolve func(ctx context.Context, s Service) (address string, err error)
	// Credentials are the server's credentials; nil: none.
	Credentials *Credentials
	// MaxAnswer limits the bytes of an answer; default 8 MiB.
	MaxAnswer int
	// Agent is the User-Agent.
	Agent string
	// Dial connects to Services, and DialURL to URLs, that are not on this server's network; nil dials
	// directly.
	Dial, DialURL func(ctx context.Context, network, address string) (net.Conn, error)
	// Trace adds trace context headers to a call; may be nil.
	Trace func(ctx context.Context, h http.Header)
	// Before is called before each call; its error fails the call, and it may delay it. It may be nil.
	Before func(ctx context.Context, t Target) error
	// ObsoleteCertificates counts obsolete certificates; nil: no counts.
	ObsoleteCertificates *ObsoleteCertificates

	mu      sync.Mutex
	clients *lru.Cache // of *connector, by their targets; nil: none yet
}

// connector is a target ready to be called.
type connector struct {
	http *http.Client
	url  url.URL
}

// Post sends a body and returns the answer. The query contains the timeout, from ctx. Answers other than 2xx
// are *StatusErrors; an invalid target is a *ConfigError.
func (c *Client) Post(ctx context.Context, t Target, body []byte) ([]byte, error) {
	to, err := c.connector(t)
	if err != nil {
		return nil, err
	}
	u := to.url
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left > 0 {
			u.RawQuery = url.Values{"timeout": {roundUp(left).String()}}.Encode()
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	r.Header.Set("User-Agent", c.Agent)
	if c.Trace != nil {
		c.Trace(ctx, r.Header)
	}
	// Nothing is sent by this, but a kept connection that turns out to be closed does
	// not fail the call: it is made again on another one.
	r.Header["X-Idempotency-Key"] = nil
	if c.Before != nil {
		if err := c.Before(ctx, t); err != nil {
			return nil, err
		}
	}
	resp, err := to.http.Do(r)
	c.ObsoleteCertificates.Observe(resp, err)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	most := cmp.Or(c.MaxAnswer, maxAnswer)
	answer, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", err)
	}
	if resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent {
		return nil, refused(resp, answer)
	}
	if len(answer) > most {
		return nil, fmt.Errorf("the answer has more than %d bytes", most)
	}
	if len(answer) == 0 {
		return nil, fmt.Errorf("0-length response with status code: %d and content type: %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return answer, nil
}

func roundUp(d time.Duration) time.Duration {
	if whole := d.Truncate(time.Second); whole != d {
		return whole + time.Second
	}
	return d
}

// refused returns the error of an answer other than 2xx: its Status, or one for its code.
func refused(resp *http.Response, body []byte) error {
	var st metav1.Status
	if sigsjson.UnmarshalCaseSensitivePreserveInts(body, &st) == nil && st.Kind == "Status" && st.APIVersion == "v1" && st.Status == metav1.StatusFailure {
		return &apierrors.StatusError{ErrStatus: st}
	}
	text := "unknown"
	if isText(resp.Header.Get("Content-Type")) {
		text = strings.TrimSpace(string(body[:min(len(body), maxQuote)]))
	}
	after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return apierrors.NewGenericServerResponse(resp.StatusCode, http.MethodPost, schema.GroupResource{}, "", text, max(after, 0), true)
}

func isText(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(media, "text/")
}

// ConfigError means that a target cannot be called as it is described.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// connector finds the connector of a target, or makes it. The least recently used one makes room.
func (c *Client) connector(t Target) (*connector, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients == nil {
		c.clients = lru.NewWithEvictionFunc(maxClients, func(_ lru.Key, to any) { to.(*connector).http.CloseIdleConnections() })
	}
	if to, ok := c.clients.Get(t); ok {
		return to.(*connector), nil
	}
	to, err := c.connect(t)
	if err != nil {
		return nil, &ConfigError{err}
	}
	c.clients.Add(t, to)
	return to, nil
}

func (c *Client) connect(t Target) (*connector, error) {
	u, serverName, local, err := t.address()
	if err != nil {
		return nil, err
	}
	cfg, err := c.Credentials.of(u.Host)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := tlsOf(cfg, t.CABundle)
	if err != nil {
		return nil, err
	}
	if serverName != "" && tlsConfig.ServerName == "" {
		tlsConfig.ServerName = serverName
	}
	transport := &http.Transport{
		TLSClientConfig: tlsConfig, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: idle,
		MaxIdleConnsPerHost: perTarget, MaxResponseHeaderBytes: 64 << 10, Proxy: http.ProxyFromEnvironment,
		ForceAttemptHTTP2: local, // others may be several behind one address
	}
	if !local {
		tlsConfig.NextProtos = []string{"http/1.1"}
	}
	transport.DialContext = c.DialURL
	if t.URL == "" {
		transport.Proxy = nil
		transport.DialContext = c.dial(t.Service)
	}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, transport)
	if err != nil {
		return nil, err
	}
	return &connector{url: *u, http: &http.Client{
		Transport:     wrapped,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// tlsOf trusts the bundle in addition to the authorities in the credentials.
func tlsOf(cfg *rest.Config, bundle string) (*tls.Config, error) {
	own := rest.CopyConfig(cfg)
	if bundle != "" {
		if len(own.CAData) > 0 {
			own.CAData = append(own.CAData, '\n')
		}
		own.CAData = append(own.CAData, bundle...)
	}
	t, err := rest.TLSConfigFor(own)
	if err != nil {
		return nil, err
	}
	if t == nil {
		t = &tls.Config{}
	}
	t.MinVersion = cmp.Or(t.MinVersion, tls.VersionTLS12)
	return t, nil
}

// address returns the address of a target, the name for its certificate, and whether it is this machine.
func (t *Target) address() (u *url.URL, serverName string, local bool, err error) {
	if t.URL == "" {
		if t.Service.Name == "" {
			return nil, "", false, errors.New("webhook configuration must have either service or URL")
		}
		port := cmp.Or(t.Service.Port, 443)
		serverName = t.Service.Name + "." + t.Service.Namespace + ".svc"
		u = &url.URL{Scheme: "https", Host: net.JoinHostPort(serverName, strconv.Itoa(int(port))), Path: path.Join("/", t.Service.Path)}
		return u, serverName, false, nil
	}
	given, err := url.Parse(t.URL)
	if err != nil {
		return nil, "", false, fmt.Errorf("Unparsable URL: %w", err)
	}
	if given.Scheme != "https" || given.Host == "" {
		return nil, "", false, errors.New("Unparsable URL: no https://host")
	}
	host := given.Hostname()
	local = strings.EqualFold(host, "localhost")
	if ip := net.ParseIP(host); ip != nil {
		local = ip.IsLoopback()
	}
	return &url.URL{Scheme: "https", Host: given.Host, Path: path.Join("/", given.Path)}, "", local, nil
}

// dial connects to wherever a Service is at the moment.
func (c *Client) dial(s Service) func(context.Context, string, string) (net.Conn, error) {
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		if c.Resolve == nil {
			return nil, errors.New("services cannot be resolved")
		}
		address, err := c.Resolve(ctx, s)
		if err != nil {
			return nil, err
		}
		return dial(ctx, network, address)
	}
}

// Close ends the connections that are not in use.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clients != nil {
		c.clients.Clear()
	}
}
