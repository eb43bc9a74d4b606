package podverbs

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/proxy"

	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
)

func upgrades(r *http.Request) bool {
	for _, v := range r.Header.Values("Connection") {
		if slices.ContainsFunc(strings.Split(v, ","), func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), "upgrade") }) {
			return true
		}
	}
	return false
}

// forward hands the request on, without what the client proved itself with.
func forward(c *verbs.Call, to *url.URL, transport http.RoundTripper) error {
	var failed error
	p := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = to
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
			for name := range r.Out.Header {
				if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
					r.Out.Header.Del(name)
				}
			}
			dropBearer(r.Out.Header)
		},
		// What a page of a pod may be shared with is not for the pod to say here.
		ModifyResponse: func(r *http.Response) error {
			for _, name := range []string{"Credentials", "Headers", "Methods", "Origin"} {
				r.Header.Del("Access-Control-Allow-" + name)
			}
			return nil
		},
		FlushInterval: -1,
		ErrorHandler:  func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	p.ServeHTTP(c.W, c.R)
	var known *apierrors.StatusError
	if failed == nil || errors.As(failed, &known) {
		return failed
	}
	return status.Plain(fmt.Sprintf("error dialing backend: %v", failed))
}

// relinked makes links of pages that are fetched at path below lead to path asked.
func relinked(asked, below string, transport http.RoundTripper) http.RoundTripper {
	if strings.HasSuffix(asked, "/") && !strings.HasSuffix(below, "/") {
		below += "/"
	}
	return &proxy.Transport{PathPrepend: strings.TrimSuffix(asked, below), RoundTripper: transport}
}

// dropBearer removes the token that browsers put among WebSocket protocols.
func dropBearer(h http.Header) {
	const name, prefix = "Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io."
	var kept []string
	for _, line := range h.Values(name) {
		for _, p := range strings.Split(line, ",") {
			if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, prefix) {
				kept = append(kept, p)
			}
		}
	}
	if len(kept) == 0 {
		h.Del(name)
		return
	}
	h.Set(name, strings.Join(kept, ", "))
}
