package schema

import (
	"context"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema/gnostic"
)

// Documents makes the OpenAPI documents of a catalogue, each when it is first asked
// for, and keeps them compressed until the catalogue changes. It is safe for
// concurrent use; each is made once for all who ask meanwhile (making.go).
type Documents struct {
	catalogue *kinds.Catalogue
	version   string
	// CustomSchema gives the OpenAPI 3 schema of a custom resource. Nil, or a nil
	// answer, stands for an object of unknown fields. Set before first use.
	CustomSchema func(*kinds.Resource) json.RawMessage
	// CustomText returns the schema of a custom resource as it is stored, nil where that is not in
	// effect. Nil: CustomSchema is used instead. Set before first use.
	CustomText func(*kinds.Resource) []byte
	// CustomDigest distinguishes the schemas of custom resources without making them; "" for a
	// resource that is not custom. Nil: schemas are made to compare them. Set before first use.
	CustomDigest func(*kinds.Resource) string
	// Others has the documents of other servers; nil: there are none. Set before first use.
	Others Others
	// CBOR means that bodies may be CBOR.
	CBOR bool
	// Now is the clock for Last-Modified and Expires.
	Now func() time.Time

	// Fail answers a request whose wait for a document failed. Nil: the answer is a code alone. Set before
	// first use.
	Fail func(w http.ResponseWriter, r *http.Request, err error)

	mu         sync.Mutex // nothing is made while it is held
	generation uint64
	resources  []*kinds.Resource            // of this generation
	byKey      map[string][]*kinds.Resource // the same, by the path below /openapi/v3
	groups     map[string]bool              // of these resources, without those of definitions
	others     uint64                       // the version of other servers' documents
	documents  map[string]*document         // by the path below /openapi/v3; "" for the index
	swagger    *document
	swaggerPB  *document

	making  map[wanted]*making
	asks    int64          // requests for documents that were not made yet
	waiters int            // requests that wait for documents, or make some
	waiting map[string]int // the same, by user
	gate    *fair.Gate     // to make documents of version 3

	large2 int                // bytes of a form of version 2 that is not kept for long
	asked2 map[bool]time.Time // when one was requested, by whether in protobuf
	begun  chan struct{}      // there is something to look after again

	making2 chan struct{} // the one place of who makes a document of version 2, or drops its parts
	// The parts of these documents, for the goroutine that has that place.
	swaggerParts map[string]*swaggerPart
	swaggerBases map[bool]*swaggerBase // by whether it is in protobuf

	first sync.Mutex // held while the definitions of built-in types are made
	made  *builtIn   // nil until a document is made
}

// Others are the documents of other servers. The numbers rise when anything of them changes.
type Others interface {
	// OpenAPI3 are hashes of documents, by the path below /openapi/v3.
	OpenAPI3() (hashes map[string]string, number uint64)
	// ServeOpenAPI3 answers with one of them.
	ServeOpenAPI3(w http.ResponseWriter, r *http.Request, path string)
	// OpenAPI2 returns its parts of the document of version 2.
	OpenAPI2() (parts []*Swagger, number uint64)
}

// document is one encoded document.
type document struct {
	packed    []byte // gzip; nil for one of pieces, and for one of which only the tag was requested
	pieces    pieces
	etag      string
	modified  time.Time
	asked     time.Time         // for the last time
	resources []*kinds.Resource // what it describes
	protobuf  *document         // of version 3, the same in protobuf; nil until asked for
}

// NewDocuments makes the documents of a catalogue for a server of a release ("1.32").
func NewDocuments(catalogue *kinds.Catalogue, version string) *Documents {
	return &Documents{
		catalogue: catalogue, version: version, Now: time.Now, documents: map[string]*document{},
		making: map[wanted]*making{}, waiting: map[string]int{}, gate: newGate(), making2: make(chan struct{}, 1),
		swaggerParts: map[string]*swaggerPart{}, swaggerBases: map[bool]*swaggerBase{},
		asked2: map[bool]time.Time{}, large2: large2, begun: make(chan struct{}, 1),
	}
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

// state returns what a document is made of now. What the catalogue or other servers have left behind
// is forgotten. The caller holds mu.
func (d *Documents) state(w wanted) state {
	d.refresh()
	now := state{resources: d.resources, byKey: d.byKey}
	if d.Others != nil {
		var number uint64
		switch {
		case w.version2:
			now.parts, number = d.Others.OpenAPI2()
			d.renumber(number)
		case w.key == "":
			now.hashes, number = d.Others.OpenAPI3()
			d.renumber(number)
		}
	}
	now.generation, now.others = d.generation, d.others
	return now
}

// refresh forgets the documents that the catalogue has left behind. The caller holds mu.
func (d *Documents) refresh() {
	resources, generation := d.catalogue.Snapshot()
	if generation == d.generation {
		return
	}
	d.generation, d.resources, d.swagger, d.swaggerPB = generation, resources, nil, nil
	d.byKey, d.groups = make(map[string][]*kinds.Resource, len(d.byKey)), make(map[string]bool, len(d.groups))
	for _, r := range resources {
		key := documentKey(r)
		d.byKey[key] = append(d.byKey[key], r)
		if !byDefinition(r) {
			d.groups[r.Group] = true
		}
	}
	delete(d.documents, "")
	for key, doc := range d.documents {
		if !slices.Equal(doc.resources, d.byKey[key]) || !d.knows(wanted{key: key}) {
			delete(d.documents, key)
		}
	}
}

// renumber drops documents made of an earlier state of other servers' documents. The caller holds mu.
func (d *Documents) renumber(number uint64) {
	if number != d.others {
		d.others, d.swagger, d.swaggerPB = number, nil, nil
		delete(d.documents, "")
	}
}

// documentKey returns the key of the document that describes a resource.
func documentKey(r *kinds.Resource) string {
	if r.Group == "" {
		return "api/" + r.Version
	}
	return "apis/" + r.APIVersion()
}

// knows reports whether there is such a document. The caller holds mu.
func (d *Documents) knows(w wanted) bool {
	if w.version2 || w.key == "" || len(d.byKey[w.key]) > 0 {
		return true
	}
	if group, below := strings.CutPrefix(w.key, "apis/"); below && group != "" && d.groups[group] {
		return true
	}
	_, root := fixedRoots()[w.key]
	return root
}

// ready returns a document if it is made, or nil, and counts the request. The caller holds mu.
func (d *Documents) ready(w wanted) *document {
	if w.version2 {
		d.asked2[w.protobuf] = d.Now()
		d.begin()
		return *d.slot2(w.protobuf)
	}
	doc := d.documents[w.key]
	if doc == nil || doc.packed == nil || w.protobuf && doc.protobuf == nil {
		return nil
	}
	if w.key != "" {
		d.keep(doc)
	}
	if w.protobuf {
		return doc.protobuf
	}
	return doc
}

// store keeps a document, unless it is outdated. The caller holds mu.
func (d *Documents) store(w wanted, m *making) {
	now := state{generation: d.generation, others: d.others, byKey: d.byKey}
	if !m.describes(w, &now) || !d.knows(w) {
		return
	}
	switch {
	case w.version2:
		*d.slot2(w.protobuf) = m.doc
	case w.protobuf:
		if doc := d.documents[w.key]; doc != nil && doc.packed != nil && doc.etag == m.doc.etag {
			doc.protobuf = m.doc
		}
	default:
		d.documents[w.key] = m.doc
		if w.key != "" {
			d.keep(m.doc)
		}
	}
}

// version3 returns a document of version 3, or nil for an unknown one. In protobuf it has the tag of
// the JSON form: both have the same content.
func (d *Documents) version3(ctx context.Context, user, key string, protobuf bool) (*document, error) {
	doc, err := d.find(ctx, user, wanted{key: key})
	if doc == nil || err != nil || !protobuf {
		return doc, err
	}
	return d.find(ctx, user, wanted{key: key, protobuf: true})
}

// inProtobuf makes the protobuf form of a document of version 3.
func (doc *document) inProtobuf(now time.Time) (*document, error) {
	text, err := unzip(doc.packed)
	if err != nil {
		return nil, err
	}
	wire, err := gnostic.Encode(text)
	if err != nil {
		return nil, err
	}
	other, err := packed(wire, now)
	if err != nil {
		return nil, err
	}
	other.etag, other.modified = doc.etag, doc.modified
	return other, nil
}

// buildIndex makes the list of all documents of version 3, with their hashes.
func (d *Documents) buildIndex(of *state) (*document, error) {
	b, err := d.newBuilder(of)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	b.documents = maps.Clone(d.documents)
	d.mu.Unlock()
	paths, made := tree{}, map[string]*document{}
	for _, key := range b.keys() {
		doc := b.documents[key]
		if doc == nil || len(doc.resources) > 0 && !slices.Equal(doc.resources, b.byKey[key]) {
			delete(b.documents, key)
			if doc, err = b.tagged(key); err != nil {
				return nil, err
			}
			made[key] = doc
		}
		paths[key] = tree{"serverRelativeURL": documentURL(key, doc.etag)}
	}
	d.keepTags(made, b.byKey)
	for key, hash := range of.hashes {
		paths[key] = tree{"serverRelativeURL": documentURL(key, hash)}
	}
	text, err := json.Marshal(tree{"paths": paths})
	if err != nil {
		return nil, err
	}
	return d.pack(text, nil)
}

// keepTags keeps documents that were made for their tags, but those that there are already, or that
// are of the past.
func (d *Documents) keepTags(made map[string]*document, byKey map[string][]*kinds.Resource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, doc := range made {
		if d.documents[key] == nil && slices.Equal(d.byKey[key], byKey[key]) && d.knows(wanted{key: key}) {
			d.documents[key] = doc
		}
	}
}

func documentURL(key, etag string) string {
	u := url.URL{Path: "/openapi/v3/" + strings.TrimPrefix(key, "/")}
	if etag != "" {
		u.RawQuery = url.Values{"hash": {etag}}.Encode()
	}
	return u.String()
}
