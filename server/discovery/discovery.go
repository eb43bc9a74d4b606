// Package discovery serves the lists of groups, versions and resources, one document each or all in one, and
// the release.
//
// Documents follow the catalogue, are computed once for each change of it, and are served as bytes.
//
// Goroutines: the server starts Run. Without it requests make the documents.
package discovery

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/status"
)

// Config configures discovery. All fields but Address and Services are required.
type Config struct {
	Catalogue *kinds.Catalogue
	// Follow brings the catalogue up to date; nil: it is so always.
	Follow func()
	// Services lists APIServices, with a number that rises whenever the list changes. Nil,
	// or an empty list: this server serves all that there is.
	Services func() ([]Service, uint64)
	// Codecs are the media types of the documents; the first one is the default.
	Codecs []codecs.Codec
	// VersionCodecs are the forms of the documents of built-in versions; nil: Codecs.
	VersionCodecs []codecs.Codec
	// Address is the address of the server for clients, host:port.
	Address string
	// Version is the answer to /version.
	Version version.Info
	// NoHashes omits the hashes by which clients notice that a resource has another stored version.
	NoHashes bool
	// Single: each document by itself, as before release 1.27; there is none that has all.
	Single bool
	// OnlyV2 disables version v2beta1 of aggregated discovery.
	OnlyV2 bool
	// Compress sends large documents compressed to clients that can read that.
	Compress bool
	// Fail writes an error in the form that the client accepts.
	Fail func(w http.ResponseWriter, r *http.Request, err error)
}

// Handler serves /api, /apis and /version and the documents of groups and versions below them, but not the paths of
// resources.
type Handler struct {
	config  Config
	types   []string
	ofTypes []string // of the documents of built-in versions
	codecs  map[string]codecs.Codec
	core    *document
	version []byte

	mu      sync.Mutex // held while documents are made
	current atomic.Pointer[documents]
	made    atomic.Uint64 // how often they were

	running atomic.Bool   // Run makes documents that are wanted
	wanted  chan struct{} // one place
}

var madeDesc = prometheus.NewDesc("aggregator_discovery_aggregation_count_total", "[ALPHA] Counter of number of times discovery was aggregated", nil, nil)

// Describe implements prometheus.Collector.
func (h *Handler) Describe(ch chan<- *prometheus.Desc) { ch <- madeDesc }

// Collect implements prometheus.Collector.
func (h *Handler) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(madeDesc, prometheus.CounterValue, float64(h.made.Load()))
}

// New makes a Handler.
func New(c Config) (*Handler, error) {
	h := &Handler{config: c, codecs: make(map[string]codecs.Codec, len(c.Codecs)), wanted: make(chan struct{}, 1)}
	for _, codec := range c.Codecs {
		h.types = append(h.types, codec.MediaType())
		h.codecs[codec.MediaType()] = codec
	}
	h.ofTypes = h.types
	if len(c.VersionCodecs) > 0 {
		h.ofTypes = nil
	}
	for _, codec := range c.VersionCodecs {
		h.ofTypes = append(h.ofTypes, codec.MediaType())
		h.codecs[codec.MediaType()] = codec
	}
	versions := &metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
		Versions: []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
			{ClientCIDR: "0.0.0.0/0", ServerAddress: c.Address},
		},
	}
	h.core = newDocument(versions)
	var err error
	if h.version, err = encodeVersion(c.Version); err != nil {
		return nil, err
	}
	_, err = h.documents()
	return h, err
}

func (h *Handler) services() ([]Service, uint64) {
	if h.config.Services == nil {
		return nil, 0
	}
	return h.config.Services()
}

// Serves reports whether a path is one of discovery's: "/api" to "/api/v1",
// "/apis" to "/apis/apps/v1", each with or without a slash at the end; "/version" and
// all below it.
func Serves(path string) bool {
	parts := split(path)
	switch parts[0] {
	case "version":
		return true
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	}
	return false
}

// split cuts a path into its parts; there is always a first one.
func split(path string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
}

// ServeHTTP answers requests for paths for which Serves returns true.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := split(r.URL.Path)
	d := h.settled(parts)
	if d == nil {
		var err error
		if d, err = h.documents(); err != nil {
			h.config.Fail(w, r, err)
			return
		}
	}
	switch {
	case !Serves(r.URL.Path):
		http.NotFound(w, r)
	case parts[0] == "version" && len(parts) > 1:
		h.config.Fail(w, r, status.NoResource())
	case parts[0] == "version":
		h.serveVersion(w, r)
	case parts[0] == "api" && len(parts) == 1:
		h.serveRoot(w, r, d.legacy, h.core, true)
	case parts[0] == "api":
		h.serveVersionDocument(w, r, d, schema.GroupVersion{Version: parts[1]})
	case len(parts) == 1:
		h.serveRoot(w, r, d.named, d.list, false)
	case d.groups[parts[1]] == nil:
		http.NotFound(w, r)
	case len(parts) == 2:
		h.serve(w, r, d.groups[parts[1]], h.types, false)
	default:
		h.serveVersionDocument(w, r, d, schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
}

// serveVersionDocument lists the resources of a group version. Custom groups, and those of other servers,
// ignore the method, and have no Status for missing versions.
func (h *Handler) serveVersionDocument(w http.ResponseWriter, r *http.Request, d *documents, gv schema.GroupVersion) {
	custom, here := d.custom[gv.Group]
	doc := d.versions[gv]
	switch {
	case doc == nil && (custom || !here):
		http.NotFound(w, r)
	case doc == nil:
		h.config.Fail(w, r, status.NoResource())
	case custom:
		h.serve(w, r, doc, h.types, false)
	default:
		h.serve(w, r, doc, h.ofTypes, true)
	}
}

// serveRoot answers with all groups in one document where the client takes that.
func (h *Handler) serveRoot(w http.ResponseWriter, r *http.Request, all *aggregated, plain *document, route bool) {
	if route && r.Method != http.MethodGet {
		h.config.Fail(w, r, status.NotAllowed())
		return
	}
	if h.config.Single {
		h.serve(w, r, plain, h.types, route)
		return
	}
	f, err := codecs.Negotiate(r, codecs.Offer{Types: h.types, Transforms: h.aggregatedForm})
	if err != nil || f.As.Kind == "" {
		h.serve(w, r, plain, h.types, route)
		return
	}
	if err := all.ready(); err != nil {
		h.config.Fail(w, r, err)
		return
	}
	header := w.Header()
	header.Set("ETag", all.etag)
	header.Set("Vary", "Accept")
	header.Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == all.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	doc := all.v2
	if f.As.Version == "v2beta1" {
		doc = all.v2beta1
	}
	h.write(w, r, doc, f, f.Type+";g="+f.As.Group+";v="+f.As.Version+";as="+f.As.Kind)
}

// aggregatedForm is the only transform of the roots.
func (h *Handler) aggregatedForm(_ string, as schema.GroupVersionKind) bool {
	return as.Group == groupName && as.Kind == listKind && (as.Version == "v2" || as.Version == "v2beta1" && !h.config.OnlyV2)
}

// serve answers with a document in a form that the client accepts. A route is strict about method and Accept.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, doc *document, types []string, route bool) {
	if route {
		if r.Method != http.MethodGet {
			h.config.Fail(w, r, status.NotAllowed())
			return
		}
		if err := codecs.Acceptable(r, types); err != nil {
			h.config.Fail(w, r, err)
			return
		}
	}
	f, err := codecs.Negotiate(r, codecs.Offer{Types: types})
	if err != nil {
		h.config.Fail(w, r, err)
		return
	}
	h.write(w, r, doc, f, f.Type)
}

func (h *Handler) write(w http.ResponseWriter, r *http.Request, doc *document, f codecs.Form, contentType string) {
	b, err := doc.bytes(h.codecs[f.Type], f.Pretty)
	zip := h.config.Compress && len(b) > framing.CompressFrom && framing.AcceptsGzip(r)
	if zip && err == nil {
		b, err = doc.zipped(h.codecs[f.Type], f.Pretty)
	}
	if err != nil {
		h.config.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", contentType)
	if zip {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Add("Vary", "Accept-Encoding")
	}
	_, _ = w.Write(b) // the client has disconnected
}
