package podverbs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/relay"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
)

// forward passes the request on without the client's credentials.
func forward(c *verbs.Call, to *url.URL, transport http.RoundTripper) error {
	var failed error
	p := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = to
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
			relay.StripRequest(r.Out.Header, nil)
		},
		// A pod must not decide which other sites may read the answer.
		ModifyResponse: func(r *http.Response) error {
			for _, name := range []string{"Credentials", "Headers", "Methods", "Origin"} {
				r.Header.Del("Access-Control-Allow-" + name)
			}
			relay.StripResponse(r.Header)
			return nil
		},
		FlushInterval: -1,
		ErrorHandler:  func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	ctx, cancel := context.WithCancel(c.R.Context())
	defer cancel()
	p.ServeHTTP(relay.NewFinal(c.W, cancel), c.R.WithContext(ctx))
	var known *apierrors.StatusError
	if failed == nil || errors.As(failed, &known) {
		return failed
	}
	return status.Plain(fmt.Sprintf("error dialing backend: %v", failed))
}

// relinked rewrites links of pages below the path below, so that they lead to the path of the request.
func (d *dialer) relinked(c *verbs.Call, below string, transport http.RoundTripper) http.RoundTripper {
	asked := c.R.URL.Path
	if strings.HasSuffix(asked, "/") && !strings.HasSuffix(below, "/") {
		below += "/"
	}
	return &pages{transport: transport, prepend: strings.TrimSuffix(asked, below), gate: d.pages, user: c.Request.User()}
}
