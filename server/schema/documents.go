package schema

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"

	"github.com/rowlock/rowlock/server/kinds"
)

// Documents makes the OpenAPI documents of a catalogue, each when it is first asked
// for, and keeps them compressed until the catalogue changes. It is safe for
// concurrent use; one document is built at a time.
type Documents struct {
	catalogue *kinds.Catalogue
	version   string
	// CustomSchema gives the OpenAPI 3 schema of a custom resource. Nil, or a nil
	// answer, stands for an object of unknown fields. Set before first use.
	CustomSchema func(*kinds.Resource) json.RawMessage
	// CustomText gives the schema of a custom resource as it is stored, nil where that is not what
	// holds. Nil: what CustomSchema says is read instead. Set before first use.
	CustomText func(*kinds.Resource) []byte
	// CustomDigest tells the schemas of custom resources apart without making them; "" for a
	// resource that is not custom. Nil: schemas are made to tell them apart. Set before first use.
	CustomDigest func(*kinds.Resource) string
	// Others tell of the documents of other servers; nil: there are none. Set before first use.
	Others Others
	// CBOR says that bodies may be CBOR.
	CBOR bool
	// Now is the clock for Last-Modified and Expires.
	Now func() time.Time

	mu         sync.Mutex
	generation uint64
	resources  []*kinds.Resource            // of this generation
	byKey      map[string][]*kinds.Resource // the same, by the path below /openapi/v3
	others     uint64                       // the number of what other servers say
	packed     []byte                       // the definitions of built-in types; nil until a document is made
	common     definitions                  // of them, what documents of custom kinds need
	packages   map[string]bool              // of all of them
	documents  map[string]*document         // by the path below /openapi/v3; "" for the index
	swagger    *document
	swaggerPB  *document

	large2 int                // bytes of a form of version 2 that is not kept for long
	asked2 map[bool]time.Time // when one was asked for, by whether in protobuf
	begun  chan struct{}      // there is something to look after again

	making sync.Mutex // held while a document of version 2 is made; locked before mu
	// What they are put together of.
	swaggerParts map[string]*swaggerPart
	swaggerBases map[bool]*swaggerBase // by whether it is in protobuf
}

// Others are the documents of other servers. The numbers rise when anything of them changes.
type Others interface {
	// OpenAPI3 are hashes of documents, by the path below /openapi/v3.
	OpenAPI3() (hashes map[string]string, number uint64)
	// ServeOpenAPI3 answers with one of them.
	ServeOpenAPI3(w http.ResponseWriter, r *http.Request, path string)
	// OpenAPI2 is what becomes a part of the document of version 2.
	OpenAPI2() (parts []*Swagger, number uint64)
}

// document is one encoded document.
type document struct {
	packed    []byte // gzip; nil for one of pieces, and for one of which only the tag was asked for
	pieces    pieces
	etag      string
	modified  time.Time
	asked     time.Time         // for the last time
	resources []*kinds.Resource // what it describes
	protobuf  *document         // of version 3, the same in protobuf; nil until asked for
}

// NewDocuments makes the documents of a catalogue for a server of a release ("1.32").
func NewDocuments(catalogue *kinds.Catalogue, version string) *Documents {
	return &Documents{catalogue: catalogue, version: version, Now: time.Now, documents: map[string]*document{},
		swaggerParts: map[string]*swaggerPart{}, swaggerBases: map[bool]*swaggerBase{}, asked2: map[bool]time.Time{}, large2: large2, begun: make(chan struct{}, 1)}
}

func (d *Documents) pack(text []byte, resources []*kinds.Resource) (*document, error) {
	doc, err := packed(text, d.Now())
	if err == nil {
		doc.resources = resources
	}
	return doc, err
}

func packed(text []byte, now time.Time) (*document, error) {
	b, err := packBytes(text)
	return &document{packed: b, etag: fmt.Sprintf("%X", sha512.Sum512(text)), modified: now}, err
}

// refresh forgets the documents that the catalogue has left behind. The caller holds mu.
func (d *Documents) refresh() []*kinds.Resource {
	resources, generation := d.catalogue.Snapshot()
	if generation == d.generation {
		return d.resources
	}
	d.generation, d.resources, d.swagger, d.swaggerPB = generation, resources, nil, nil
	d.byKey = make(map[string][]*kinds.Resource, len(d.byKey))
	for _, r := range resources {
		key := documentKey(r)
		d.byKey[key] = append(d.byKey[key], r)
	}
	delete(d.documents, "")
	for key, doc := range d.documents {
		if len(doc.resources) > 0 && !slices.Equal(doc.resources, d.byKey[key]) {
			delete(d.documents, key)
		}
	}
	return resources
}

// elsewhere are the hashes of other servers' documents of version 3. The caller holds mu.
func (d *Documents) elsewhere() map[string]string {
	if d.Others == nil {
		return nil
	}
	hashes, number := d.Others.OpenAPI3()
	d.renumber(number)
	return hashes
}

// parts are other servers' documents of version 2. The caller holds mu.
func (d *Documents) parts() []*Swagger {
	if d.Others == nil {
		return nil
	}
	parts, number := d.Others.OpenAPI2()
	d.renumber(number)
	return parts
}

// renumber forgets what was made of other servers' documents before.
func (d *Documents) renumber(number uint64) {
	if number != d.others {
		d.others, d.swagger, d.swaggerPB = number, nil, nil
		delete(d.documents, "")
	}
}

// documentKey is the key of the document that describes a resource.
func documentKey(r *kinds.Resource) string {
	if r.Group == "" {
		return "api/" + r.Version
	}
	return "apis/" + r.APIVersion()
}

// version3 returns a document of version 3, or nil for an unknown one.
func (d *Documents) version3(key string) (*document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	resources := d.refresh()
	if doc := d.documents[key]; doc != nil && doc.packed != nil && key != "" {
		d.keep(doc)
		return doc, nil
	}
	doc, err := d.build3(key, resources)
	if doc != nil {
		d.documents[key] = doc
		d.keep(doc)
	}
	return doc, err
}

// version3Protobuf returns a document of version 3 in protobuf, or nil for an unknown
// one. It has the tag of the JSON form: both say the same.
func (d *Documents) version3Protobuf(key string) (*document, error) {
	doc, err := d.version3(key)
	if doc == nil || err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return doc.inProtobuf(d.Now())
}

// inProtobuf is a document of version 3 in protobuf, which is made once. Whoever else may
// call it waits.
func (doc *document) inProtobuf(now time.Time) (*document, error) {
	if doc.protobuf != nil {
		return doc.protobuf, nil
	}
	text, err := unzip(doc.packed)
	if err != nil {
		return nil, err
	}
	parsed, err := openapi_v3.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(parsed)
	if err != nil {
		return nil, err
	}
	other, err := packed(wire, now)
	if err != nil {
		return nil, err
	}
	other.etag, other.modified = doc.etag, doc.modified
	doc.protobuf = other
	return other, nil
}

// index returns the list of all documents of version 3, with their hashes.
func (d *Documents) index() (*document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	resources, hashes := d.refresh(), d.elsewhere()
	if doc := d.documents[""]; doc != nil {
		return doc, nil
	}
	b, err := d.newBuilder(resources)
	if err != nil {
		return nil, err
	}
	paths := tree{}
	for _, key := range b.keys() {
		doc := d.documents[key]
		if doc == nil {
			if doc, err = b.tagged(key); err != nil {
				return nil, err
			}
			d.documents[key] = doc
		}
		paths[key] = tree{"serverRelativeURL": documentURL(key, doc.etag)}
	}
	for key, hash := range hashes {
		paths[key] = tree{"serverRelativeURL": documentURL(key, hash)}
	}
	text, err := json.Marshal(tree{"paths": paths})
	if err != nil {
		return nil, err
	}
	doc, err := d.pack(text, nil)
	if err == nil {
		d.documents[""] = doc
	}
	return doc, err
}

func documentURL(key, etag string) string {
	u := url.URL{Path: "/openapi/v3/" + strings.TrimPrefix(key, "/")}
	if etag != "" {
		u.RawQuery = url.Values{"hash": {etag}}.Encode()
	}
	return u.String()
}
