// Package remote calls a service that a kubeconfig names: it posts one object and gets one back.
//
// A call takes no longer than its timeout; it is retried a few times, with growing pauses, while the service
// fails; errors read like those of an API client; requests and the credentials of the kubeconfig go to no
// other host, whatever redirect an answer contains, and errors do not contain them.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	sigsjson "sigs.k8s.io/json"
)

const (
	tries      = 5
	firstPause = 500 * time.Millisecond
	maxAnswer  = 3 << 20 // bytes
	maxQuote   = 2048    // bytes of an answer in an error
)

// Dial makes a connection.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Service is a remote service. It is safe for concurrent use.
type Service struct {
	// Pause is that before the second try; each later one is half as long again, and
	// each varies by a fifth.
	Pause time.Duration
	// Observe, if set, is called for each try: the caller's context, and the error if it
	// went wrong.
	Observe func(ctx context.Context, took time.Duration, err error)

	client  *http.Client
	url     *url.URL
	timeout time.Duration
}

// New reads a kubeconfig; its current context names the service and the user. It makes no call yet. timeout
// is that of one attempt. dial makes connections; nil: directly.
func New(kubeconfig string, timeout time.Duration, dial Dial) (*Service, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	file := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	cfg, err := file.ClientConfig()
	if err != nil {
		return nil, err
	}
	host := cfg.Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	u, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("%s: server: %w", kubeconfig, err)
	}
	u.Path = cmp.Or(u.Path, "/")
	u.RawQuery = parameters(file)
	client, err := Client(cfg, dial)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kubeconfig, err)
	}
	return &Service{Pause: firstPause, client: client, url: u, timeout: timeout}, nil
}

// Client returns an HTTP client by a kubeconfig, which goes where it is sent and nowhere else:
// no answer leads it, and its credentials, to another server.
func Client(cfg *rest.Config, dial Dial) (*http.Client, error) {
	if dial != nil {
		cfg = rest.CopyConfig(cfg)
		cfg.Dial = dial
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	own := *client // others may use it
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own, nil
}

// parameters returns the parameters of the URL in the current context. Package clientcmd drops them if
// there is a path, and nothing would report that.
func parameters(file clientcmd.ClientConfig) string {
	raw, err := file.RawConfig()
	if err != nil {
		return ""
	}
	context := raw.Contexts[raw.CurrentContext]
	if context == nil || raw.Clusters[context.Cluster] == nil {
		return ""
	}
	u, err := url.Parse(raw.Clusters[context.Cluster].Server)
	if err != nil {
		return ""
	}
	return u.RawQuery
}

// URL returns the address of the service in the kubeconfig.
func (s *Service) URL() *url.URL { return s.url }

// Ask posts a question and reads the answer, which must have the group, version and kind of into.
func (s *Service) Ask(ctx context.Context, question []byte, gvk schema.GroupVersionKind, into any) error {
	pause := s.Pause
	for try := 1; ; try++ {
		start := time.Now()
		answer, again, err := s.post(ctx, question)
		if err == nil {
			err = decode(answer, gvk, into)
		}
		if s.Observe != nil {
			s.Observe(ctx, time.Since(start), err)
		}
		if err == nil || !again || try == tries {
			return err
		}
		timer := time.NewTimer(pause + rand.N(pause/5+1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return err // more specific than the error of ctx
		case <-timer.C:
			pause = pause * 3 / 2
		}
	}
}

// post makes one attempt. again: a retry may succeed.
func (s *Service) post(ctx context.Context, question []byte) (answer []byte, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	u := *s.url
	q := u.Query()
	q.Set("timeout", s.timeout.String())
	u.RawQuery = q.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(question))
	if err != nil {
		return nil, false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err), err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case ctx.Err() != nil: // whatever error ended the connection
		return nil, false, fmt.Errorf("Post %q: %w", u.Redacted(), ctx.Err())
	case err != nil:
		return nil, utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err), fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", err)
	case len(answer) > maxAnswer:
		return nil, false, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	case resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent:
		return nil, resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || retryAfter(resp) > 0, refusal(resp, answer)
	case len(answer) == 0:
		return nil, false, fmt.Errorf("0-length response with status code: %d and content type: %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return answer, false, nil
}

// Refused is the error of a service that answers with a failure. It is no status of this
// server's API, so that it never becomes one.
type Refused struct {
	Code int // of the answer
	text string
}

// Error reads like the error of an API client.
func (r *Refused) Error() string { return r.text }

// refusal returns the error of an answer with the code of a failure.
func refusal(resp *http.Response, body []byte) error {
	var st metav1.Status
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(body, &st); err == nil && st.Kind == "Status" && st.Status == metav1.StatusFailure && st.Message != "" {
		return &Refused{resp.StatusCode, st.Message}
	}
	text := "unknown"
	if t := resp.Header.Get("Content-Type"); t == "" || isText(t) {
		text = strings.TrimSpace(string(body[:min(len(body), maxQuote)]))
	}
	err := apierrors.NewGenericServerResponse(resp.StatusCode, http.MethodPost, schema.GroupResource{}, "", text, retryAfter(resp), true)
	return &Refused{resp.StatusCode, err.Error()}
}

func isText(contentType string) bool {
	t, _, err := mime.ParseMediaType(contentType)
	return err == nil && strings.HasPrefix(t, "text/")
}

// retryAfter is in seconds; 0 where the answer names none.
func retryAfter(resp *http.Response) int {
	n, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// decode reads an answer. One without a version or kind is taken to have the expected ones.
func decode(answer []byte, want schema.GroupVersionKind, into any) error {
	var head metav1.TypeMeta
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(answer, &head); err != nil {
		return fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	head.Kind = cmp.Or(head.Kind, want.Kind)
	if head.APIVersion == "" {
		head.APIVersion = want.GroupVersion().String()
	}
	switch got := head.GroupVersionKind(); {
	case got.Kind == "Status" && got.Group == "":
		var st metav1.Status
		if err := sigsjson.UnmarshalCaseSensitivePreserveInts(answer, &st); err == nil && st.Status != metav1.StatusSuccess && st.Message != "" {
			return &Refused{http.StatusOK, st.Message}
		}
		return errors.New("the answer is a Status without a message")
	case got.Group == want.Group && got.Kind == want.Kind && got.Version != want.Version:
		return fmt.Errorf("converting (%s.%s) to (%s.%s): unknown conversion", got.Version, got.Kind, want.Version, want.Kind)
	case got != want:
		return fmt.Errorf("no kind %q is registered for version %q", got.Kind, got.GroupVersion())
	}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(answer, into); err != nil {
		return fmt.Errorf("the answer: %w", err)
	}
	return nil
}

// IsTimeout reports whether a try ended because its time was over, here or there.
func IsTimeout(err error) bool {
	var refused *Refused
	return utilnet.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &refused) && refused.Code == http.StatusGatewayTimeout
}
