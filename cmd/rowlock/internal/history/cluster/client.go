// Package cluster connects the history commands to a cluster: by a kubeconfig and the flags of kubectl, with
// bounded answers, and with discovery, so that arguments such as deploy/web resolve as they do for kubectl. It
// follows no redirects, so that credentials go to no other server.
//
// It keeps no state between commands and writes no log.
package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/server/aggregator"
)

// maxAnswer is the largest answer in bytes. Lists are read in pages far below it.
const maxAnswer = 64 << 20

// Flags are the flags by which kubectl finds its cluster.
type Flags struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
}

// AddTo declares the flags with kubectl's names and meanings.
func (f *Flags) AddTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of the kubeconfig file (default: $KUBECONFIG, or ~/.kube/config)")
	clientcmd.BindOverrideFlags(&f.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
}

// Client sends requests as the user of a kubeconfig. It is safe for several goroutines.
type Client struct {
	// Namespace is the value of --namespace, or that of the context.
	Namespace string
	// Base is the address of the server.
	Base *url.URL
	http *http.Client
}

// Connect reads the kubeconfig. It sends no request.
func (f *Flags) Connect() (*Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides)
	cfg, err := config.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return New(cfg, namespace)
}

// New makes a client from a client-go configuration.
func New(cfg *rest.Config, namespace string) (*Client, error) {
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("address of the server: %w", err)
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &Client{Namespace: namespace, Base: base, http: remote.WithoutRedirects(client)}, nil
}

// Transport sends requests with the user's credentials.
func (c *Client) Transport() http.RoundTripper {
	if c.http.Transport == nil {
		return http.DefaultTransport
	}
	return c.http.Transport
}

// Request is one request with a JSON answer.
type Request struct {
	Method string // default GET
	Path   string // below Base, escaped
	Query  url.Values
	Body   any    // JSON, or nothing
	Type   string // Content-Type of Body; default application/json
	Accept string // default application/json
	Own    bool   // an answer that another server behind this one gave is an *ForwardedError
}

// ForwardedError: the server has forwarded the request to an aggregated server, which counts resource versions of
// its own and has no history.
type ForwardedError struct{ Path string }

func (e *ForwardedError) Error() string {
	return e.Path + " is not stored by this server, which knows it as it is now alone"
}

// IsForwarded reports whether an aggregated server sent the answer with these headers.
func IsForwarded(h http.Header) bool {
	return strings.Contains(strings.Join(h.Values("Via"), ","), aggregator.Via) // proxies on the way add their own
}

// Do sends a request and decodes the answer into a value, or discards it. Another status than 2xx is an
// *apierrors.StatusError.
func (c *Client) Do(ctx context.Context, r Request, into any) error {
	data, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the answer to %s: %w", r.Path, err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, r Request) ([]byte, error) {
	var body io.Reader
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return nil, fmt.Errorf("body of a request for %s: %w", r.Path, err)
		}
		body = bytes.NewReader(data)
	}
	address := strings.TrimSuffix(c.Base.String(), "/") + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodGet), address, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", cmp.Or(r.Accept, "application/json"))
	req.Header.Set("User-Agent", "rowlock")
	if r.Body != nil {
		req.Header.Set("Content-Type", cmp.Or(r.Type, "application/json"))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, plain(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer to %s: %w", r.Path, err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("the answer to %s is larger than %d MiB", r.Path, maxAnswer>>20)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, refusal(resp, data)
	case r.Own && IsForwarded(resp.Header):
		return nil, &ForwardedError{Path: r.Path}
	}
	return data, nil
}

// plain strips the URL from an error of the HTTP client: its query is long, and callers name the request.
func plain(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("asking the server: %w", wrapped.Err)
	}
	return err
}

// refusal returns the Status of an answer, or an error that it has none.
func refusal(resp *http.Response, data []byte) error {
	var status metav1.Status
	if json.Unmarshal(data, &status) == nil && status.Kind == "Status" {
		status.Code = int32(resp.StatusCode)
		return &apierrors.StatusError{ErrStatus: status}
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, resp.Request.Method, schema.GroupResource{}, "", "the server answers "+resp.Status, 0, true)
}
