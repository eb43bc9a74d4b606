// Package extension is an aggregated API server for tests that echoes the requests that it receives.
//
//	/apis/GROUP/VERSION   its resources: widgets (with a status) and gadgets. Groups that
//	                      begin with broken-, gone-, denied-, empty- or garbage- answer so
//	/apis                 406, or aggregated discovery where it is asked as modern.NAMESPACE.svc
//	below a version       the request as an object of kind Echo, but for some names (boom,
//	                      missing, moved, teapot, plain, empty, warned); three events to a watch
package extension

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Server is a running one.
type Server struct {
	IP     string
	Port   string
	Bundle string // its authority, as base64 of PEM

	http *http.Server
	done chan error
}

// Start listens at an address that others may be led to.
func Start() (*Server, error) {
	ip, err := address()
	if err != nil {
		return nil, err
	}
	cert, bundle, err := certificate(ip)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &Server{IP: ip.String(), Port: port, Bundle: bundle, done: make(chan error, 1)}
	s.http = &http.Server{
		Handler: http.HandlerFunc(serve), TLSConfig: &tls.Config{Certificates: []tls.Certificate{*cert}},
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 30 * time.Second,
	}
	go func() { s.done <- s.http.ServeTLS(l, "", "") }()
	return s, nil
}

// Vars are variables for scenarios.
func (s *Server) Vars() map[string]string {
	return map[string]string{"EXT_IP": s.IP, "EXT_PORT": s.Port, "EXT_CA": s.Bundle}
}

// Close ends it.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

// address returns an address of this machine other than loopback ones, which Endpoints must not contain.
func address() (netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr(), nil
		}
	}
	return netip.Addr{}, errors.New("this machine has no address of IPv4 but its loopback; a dummy interface would do")
}

func certificate(ip netip.Addr) (cert *tls.Certificate, bundle string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "extension"}, NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{ip.AsSlice()}, DNSNames: []string{"*.agg-ext.svc", "*.agg-ext2.svc"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, "", err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, base64.StdEncoding.EncodeToString(text), nil
}

type object = map[string]any

func answer(w http.ResponseWriter, code int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

func refuse(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "message": message, "reason": reason, "code": code})
}

func text(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

func serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.FieldsFunc(r.URL.Path, func(c rune) bool { return c == '/' })
	switch {
	case len(parts) == 0 || parts[0] != "apis":
		text(w, http.StatusNotFound, "404 page not found\n")
	case len(parts) == 1:
		serveRoot(w, r)
	case len(parts) == 2:
		answer(w, http.StatusOK, object{"kind": "APIGroup", "apiVersion": "v1", "name": parts[1], "versions": []object{{"groupVersion": parts[1] + "/v1", "version": "v1"}}})
	case len(parts) == 3:
		serveVersion(w, parts[1], parts[2])
	default:
		serveBelow(w, r, parts)
	}
}

var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func serveVersion(w http.ResponseWriter, group, version string) {
	kind, _, _ := strings.Cut(group, "-")
	resources := []object{
		{"name": "gadgets", "singularName": "gadget", "namespaced": false, "kind": "Gadget", "verbs": []string{"get", "list"}},
		{"name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget", "verbs": verbs, "shortNames": []string{"wd"}, "categories": []string{"all"}},
		{"name": "widgets/status", "singularName": "", "namespaced": true, "kind": "Widget", "verbs": []string{"get", "patch", "update"}},
	}
	switch kind {
	case "broken":
		refuse(w, http.StatusInternalServerError, "InternalError", "this group is broken")
		return
	case "gone":
		text(w, http.StatusNotFound, "404 page not found\n")
		return
	case "denied":
		refuse(w, http.StatusForbidden, "Forbidden", "no discovery for you")
		return
	case "garbage":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{not json")
		return
	case "empty":
		resources = []object{}
	}
	answer(w, http.StatusOK, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group + "/" + version, "resources": resources})
}

// serveRoot is aggregated discovery, for clients that request it by the right name.
func serveRoot(w http.ResponseWriter, r *http.Request) {
	accept := r.Header.Get("Accept")
	if !strings.HasPrefix(r.TLS.ServerName, "modern") || !strings.Contains(accept, "as=APIGroupDiscoveryList") {
		refuse(w, http.StatusNotAcceptable, "NotAcceptable", "only the documents of single versions")
		return
	}
	version := "v2beta1"
	if strings.Contains(accept, "v=v2;") || strings.Contains(accept, "v=v2,") {
		version = "v2"
	}
	group := func(name string, versions ...string) object {
		var list []object
		for _, v := range versions {
			kind := object{"group": name, "version": v, "kind": "Widget"}
			list = append(list, object{"version": v, "freshness": "Current", "resources": []object{{
				"resource": "widgets", "responseKind": kind, "scope": "Namespaced", "singularResource": "widget", "verbs": verbs, "shortNames": []string{"mw"},
				"subresources": []object{{"subresource": "status", "responseKind": kind, "verbs": []string{"get", "patch", "update"}}},
			}}})
		}
		return object{"metadata": object{"name": name}, "versions": list}
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v="+version+";as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(object{
		"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/" + version, "metadata": object{},
		"items": []object{group("modern.ext.example", "v2", "v1"), group("modern2.ext.example", "v1")},
	})
}

func serveBelow(w http.ResponseWriter, r *http.Request, parts []string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch parts[len(parts)-1] {
	case "boom":
		text(w, http.StatusInternalServerError, "it broke\n")
		return
	case "missing":
		refuse(w, http.StatusNotFound, "NotFound", `widgets "missing" not found`)
		return
	case "moved":
		w.Header().Set("Location", "/apis/"+parts[1]+"/"+parts[2]+"/elsewhere")
		w.WriteHeader(http.StatusFound)
		return
	case "teapot":
		refuse(w, http.StatusTeapot, "Teapot", "short and stout")
		return
	case "plain":
		text(w, http.StatusOK, "plain text\n")
		return
	case "empty":
		w.WriteHeader(http.StatusNoContent)
		return
	case "warned":
		w.Header().Set("Warning", `299 - "from the extension server"`)
	}
	if watch := r.URL.Query().Get("watch"); watch == "1" || watch == "true" {
		serveWatch(w, r, parts)
		return
	}
	code := http.StatusOK
	if r.Method == http.MethodPost {
		code = http.StatusCreated
	}
	answer(w, code, object{
		"kind": "Echo", "apiVersion": parts[1] + "/" + parts[2], "method": r.Method, "path": r.URL.Path, "query": r.URL.RawQuery,
		"headers": headers(r.Header), "body": readable(r.Header.Get("Content-Type"), body),
	})
}

func serveWatch(w http.ResponseWriter, r *http.Request, parts []string) {
	w.Header().Set("Content-Type", "application/json")
	for i, kind := range []string{"ADDED", "MODIFIED", "DELETED"} {
		_ = json.NewEncoder(w).Encode(object{"type": kind, "object": object{
			"kind": "Widget", "apiVersion": parts[1] + "/" + parts[2], "metadata": object{"name": "w", "resourceVersion": string(rune('1' + i))}, "query": r.URL.RawQuery,
		}})
		_ = http.NewResponseController(w).Flush()
	}
}

// hidden are headers that are of no interest, or differ from run to run.
var hidden = []string{"host", "content-length", "connection", "traceparent", "tracestate", "audit-id"}

func headers(h http.Header) object {
	shown := object{}
	for name, values := range h {
		switch name = strings.ToLower(name); {
		case name == "x-forwarded-for":
			shown[name] = []string{"<client>"}
		case !slices.Contains(hidden, name):
			shown[name] = values
		}
	}
	return shown
}

// readable returns a body as JSON where it is called that, else as text.
func readable(mediaType string, body []byte) any {
	if len(body) == 0 {
		return nil
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	var value any
	if (mediaType == "" || mediaType == "application/json") && json.Unmarshal(body, &value) == nil {
		return value
	}
	return strings.ToValidUTF8(string(body), "\uFFFD")
}
