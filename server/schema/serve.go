package schema

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/request"
)

// The media types of the documents in protobuf. Clients request either; answers have the first of each version.
const (
	swaggerProtobuf     = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	swaggerProtobufOld  = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	openAPI3Protobuf    = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	openAPI3ProtobufOld = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
	jsonType            = "application/json"
)

// ServeV2 answers GET /openapi/v2 as JSON or protobuf.
func (d *Documents) ServeV2(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	typ := codecs.Accepted(r, jsonType, swaggerProtobufOld, swaggerProtobuf)
	if typ == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	doc, err := d.find(r.Context(), requester(r), wanted{version2: true, protobuf: typ != jsonType})
	if err != nil {
		d.failed(w, r, err)
		return
	}
	if typ != jsonType {
		typ = swaggerProtobuf
	}
	w.Header().Set("Content-Type", typ)
	doc.serve(w, r)
}

// ServeV3 answers GET /openapi/v3, the index, and the documents below it.
func (d *Documents) ServeV3(w http.ResponseWriter, r *http.Request) {
	key, below := strings.CutPrefix(r.URL.Path, "/openapi/v3/")
	switch {
	case !below:
		d.serveIndex(w, r)
		return
	case key == "":
		w.WriteHeader(http.StatusNotFound) // the index has no slash at its end
		return
	}
	if d.Others != nil {
		if hashes, _ := d.Others.OpenAPI3(); has(hashes, key) {
			d.Others.ServeOpenAPI3(w, r, key)
			return
		}
	}
	w.Header().Add("Vary", "Accept")
	typ := codecs.Accepted(r, jsonType, openAPI3ProtobufOld, openAPI3Protobuf)
	if typ == openAPI3ProtobufOld {
		typ = openAPI3Protobuf
	}
	doc, err := d.version3(r.Context(), requester(r), key, typ == openAPI3Protobuf)
	switch {
	case err != nil:
		d.failed(w, r, err)
		return
	case doc == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	case typ == "":
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	serve3(w, r, key, typ, doc, d.Now())
}

// requester returns the user of a request, by whom builds of documents take turns.
func requester(r *http.Request) string {
	if user := request.From(r.Context()).User; user != nil {
		return user.Name
	}
	return ""
}

// failed answers where there is no document: it cannot be made, or the wait for it failed.
func (d *Documents) failed(w http.ResponseWriter, r *http.Request, err error) {
	var known apierrors.APIStatus
	if d.Fail != nil && (errors.As(err, &known) || r.Context().Err() != nil) {
		d.Fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

// serve3 answers with a document of version 3. A document that is requested by its hash never changes.
func serve3(w http.ResponseWriter, r *http.Request, key, typ string, doc *document, now time.Time) {
	if hash := r.URL.Query().Get("hash"); hash != "" {
		if hash != doc.etag {
			http.Redirect(w, r, documentURL(key, doc.etag), http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", now.UTC().AddDate(1, 0, 0).Format(http.TimeFormat))
	}
	w.Header().Set("Content-Type", typ)
	doc.serve(w, r)
}

func has(hashes map[string]string, key string) bool {
	_, ok := hashes[key]
	return ok
}

func (d *Documents) serveIndex(w http.ResponseWriter, r *http.Request) {
	doc, err := d.find(r.Context(), requester(r), wanted{})
	if err != nil {
		d.failed(w, r, err)
		return
	}
	// A stock server leaves the type to be guessed, and JSON is guessed as text.
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	doc.serve(w, r)
}

// serve writes the document, compressed if the client can read that.
func (doc *document) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Etag", strconv.Quote(doc.etag))
	h.Add("Vary", "Accept-Encoding")
	if doc.pieces != nil {
		doc.servePieces(w, r)
		return
	}
	body := doc.packed
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
	} else {
		var err error
		if body, err = unzip(doc.packed); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
	}
	http.ServeContent(w, r, "", doc.modified, bytes.NewReader(body))
}

// servePieces writes a document of pieces. It decompresses one piece at a time, and none twice: a client that requests several
// ranges, each of which may be in another piece than the previous one, gets the whole document.
func (doc *document) servePieces(w http.ResponseWriter, r *http.Request) {
	body := doc.pieces.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		body = doc.pieces.gzip
	}
	if strings.Contains(r.Header.Get("Range"), ",") {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	http.ServeContent(w, r, "", doc.modified, body())
}

func unzip(packed []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(zr); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
