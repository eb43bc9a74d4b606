package relay_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/relay"
)

func TestStrip(t *testing.T) {
	h := http.Header{
		"Authorization": {"Bearer secret"}, "authorization": {"Bearer secret"}, "Proxy-Authorization": {"Basic secret"},
		"Impersonate-User": {"admin"}, "Impersonate-Extra-A": {"b"}, "X-Remote-User": {"admin"}, "x-remote-extra-b": {"c"}, "X-REMOTE-GROUP": {"system:masters"}, "X_Remote_User": {"admin"}, "X-Site_User": {"admin"},
		"Sec-Websocket-Protocol": {"a, base64url.bearer.authorization.k8s.io.c2VjcmV0", "b"},
		"Cookie":                 {"a=b"}, "X-Remotely": {"fine"},
	}
	relay.StripRequest(h, func(name string) bool { return name == "x-site-user" })
	want := http.Header{"Sec-Websocket-Protocol": {"a, b"}, "Cookie": {"a=b"}, "X-Remotely": {"fine"}}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	alone := http.Header{"Sec-Websocket-Protocol": {"base64url.bearer.authorization.k8s.io.c2VjcmV0"}}
	if relay.StripRequest(alone, nil); len(alone) > 0 {
		t.Errorf("left: %v", alone)
	}
}

// TestFinalCodes: an early answer is dropped, and no other code becomes an implicit 200.
func TestFinalCodes(t *testing.T) {
	for code, want := range map[int]int{0: 502, 42: 502, 99: 502, 200: 200, 404: 404, 999: 999, 1000: 502, 20000: 502} {
		r := httptest.NewRecorder()
		f := relay.NewFinal(r, func() { t.Error("ended") })
		f.WriteHeader(http.StatusEarlyHints)
		f.WriteHeader(code)
		f.Write([]byte("body"))
		if r.Code != want {
			t.Errorf("the code %d became %d", code, r.Code)
		}
	}
}

func TestUpgrades(t *testing.T) {
	for line, want := range map[string]bool{"": false, "keep-alive": false, "Upgrade": true, "keep-alive, upgrade": true, "close|upGrade ": true, "upgrades": false} {
		if got := relay.Upgrades(http.Header{"Connection": strings.Split(line, "|")}); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// TestNoOtherHTTP: no request changes to a protocol in which further requests follow.
func TestNoOtherHTTP(t *testing.T) {
	for line, passes := range map[string]bool{
		"websocket": true, "SPDY/3.1": true, "h2o": true, "h2c": false, "H2C": false, "h2": false, "HTTP/2.0": false, "TLS/1.2": false, "websocket, h2c": false,
	} {
		h := http.Header{"Connection": {"Upgrade, HTTP2-Settings"}, "Upgrade": {line}, "Http2-Settings": {"AAMAAABkAAQAAP__"}}
		if got := relay.Upgrades(h); got != passes {
			t.Errorf("%s upgrades: %t", line, got)
		}
		want := http.Header{}
		if passes {
			want = http.Header{"Connection": {"Upgrade, HTTP2-Settings"}, "Upgrade": {line}}
		}
		relay.StripRequest(h, nil)
		if d := cmp.Diff(want, h); d != "" {
			t.Errorf("%s: %s", line, d)
		}
	}
}
