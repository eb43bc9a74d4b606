package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/server/cache"
)

// Backend reaches the servers behind APIServices; aggregator.Aggregator is one.
type Backend interface {
	RoundTrip(ctx context.Context, s *apiregistrationv1.APIService, who *authx.Identity, r *http.Request) (*http.Response, error)
}

// The user of fetches from other servers.
var (
	discoverer = &authx.Identity{Name: "system:kube-aggregator", Groups: []string{authx.GroupMasters}}
	describer  = &authx.Identity{Name: "system:aggregator"}
)

// errUnreachable is the failure of a request without an answer: further requests would fail too.
var errUnreachable = errors.New("the server cannot be reached")

// serverQuery is one request to a server.
type serverQuery struct {
	who     *authx.Identity
	path    string
	accept  string
	etag    string // of the answer that is there already
	timeout time.Duration
	most    int64 // bytes of the answer
}

// answer is the answer of a server.
type answer struct {
	code        int
	contentType string
	etag        string
	body        []byte // of a 200, whole
}

// ask sends a query to the server behind an APIService, within its bounds.
func (d *Documents) ask(ctx context.Context, s *apiregistrationv1.APIService, q serverQuery) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, q.path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", q.accept)
	r.Header.Set("User-Agent", d.cfg.Agent)
	if q.etag != "" {
		r.Header.Set("If-None-Match", q.etag)
	}
	var resp *http.Response
	if unread := cache.Try(func() { resp, err = d.cfg.Backend.RoundTrip(ctx, s, q.who, r) }); unread != nil {
		err = unread
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer resp.Body.Close()
	a := &answer{code: resp.StatusCode, contentType: resp.Header.Get("Content-Type"), etag: resp.Header.Get("ETag")}
	if len(a.etag) > maxETag {
		a.etag = ""
	}
	if a.code != http.StatusOK {
		return a, nil
	}
	if a.body, err = io.ReadAll(io.LimitReader(resp.Body, q.most+1)); err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", errUnreachable, q.path, err)
	}
	if int64(len(a.body)) > q.most {
		return nil, fmt.Errorf("%s has more than %d bytes", q.path, q.most)
	}
	return a, nil
}

// sound reports whether a text is JSON that does not nest too deep.
func sound(body []byte) error {
	if !scan.Loose.Valid(body, maxDepth) {
		return errors.New("the answer is no JSON, or nests too deep")
	}
	return nil
}
