package discovery

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/kinds"
)

// The aggregated document consists of the texts of versions. When a definition changes, only the text of its
// version is made again: otherwise thousands of definitions that arrive one after another would rebuild the
// whole document each time.

// part is one version of a group, as documents have it.
type part struct {
	resources []*kinds.Resource
	list      *document // its resources

	entry func() discoveryv2.APIVersionDiscovery // in the aggregated document
	text  func() ([]byte, error)                 // the same as JSON
}

func newPart(gv schema.GroupVersion, resources []*kinds.Resource, hashes bool) *part {
	p := &part{resources: resources, list: lazyDocument(func() runtime.Object { return resourceList(gv, resources, hashes) })}
	p.made(func() discoveryv2.APIVersionDiscovery {
		return discoveryv2.APIVersionDiscovery{Version: gv.Version, Resources: entries(resources), Freshness: discoveryv2.DiscoveryFreshnessCurrent}
	})
	return p
}

// elsewhere returns a version with the resources that another server reports.
func elsewhere(version discoveryv2.APIVersionDiscovery) *part {
	p := &part{}
	p.made(func() discoveryv2.APIVersionDiscovery { return version })
	return p
}

// made makes the entry of a part. It is called when needed: most readers need only the text.
func (p *part) made(entry func() discoveryv2.APIVersionDiscovery) {
	p.entry = entry
	p.text = sync.OnceValues(func() ([]byte, error) { return json.Marshal(entry()) })
}

// aggregatedGroup is a group in the aggregated document.
type aggregatedGroup struct {
	name     string
	versions []*part
	head     []byte // of its text, before the versions
}

// item returns the group as an object.
func (g *aggregatedGroup) item() discoveryv2.APIGroupDiscovery {
	item := discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
	for _, v := range g.versions {
		item.Versions = append(item.Versions, v.entry())
	}
	return item
}

// begin makes the head, unless it is that of the previous group.
func (g *aggregatedGroup) begin(codec codecs.Codec, before []byte) error {
	if g.head = before; before != nil {
		return nil
	}
	head, err := codec.Encode(nil, &discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}})
	if err != nil {
		return fmt.Errorf("encoding the discovery document: %w", err)
	}
	g.head = append(head[:len(head)-1], `,"versions":[`...)
	return nil
}

// append appends the group as JSON.
func (g *aggregatedGroup) append(dst []byte) ([]byte, error) {
	dst = append(dst, g.head...)
	for i, v := range g.versions {
		if i > 0 {
			dst = append(dst, ',')
		}
		text, err := v.text()
		if err != nil {
			return nil, err
		}
		dst = append(dst, text...)
	}
	return append(dst, "]}"...), nil
}

// aggregated are all groups in one document, in each version of the form. The fields after ready are set by
// its call: most states of a changing catalogue are never requested.
type aggregated struct {
	groups  []aggregatedGroup
	ready   func() error
	v2      *document
	v2beta1 *document
	etag    string
	is      atomic.Bool  // it is
	size    atomic.Int64 // of its text, or about that
}

// newAggregated makes the document of groups; last is the previous document or nil, was are its groups.
func newAggregated(groups []aggregatedGroup, codec codecs.Codec, last *aggregated) (*aggregated, error) {
	a := &aggregated{groups: groups}
	a.ready = sync.OnceValue(a.read)
	heads := map[string][]byte{}
	if last != nil {
		a.size.Store(last.size.Load())
		for i := range last.groups {
			heads[last.groups[i].name] = last.groups[i].head
		}
	}
	for i := range groups {
		if err := groups[i].begin(codec, heads[groups[i].name]); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// items returns all groups as objects.
func (a *aggregated) items() (items []discoveryv2.APIGroupDiscovery) {
	for i := range a.groups {
		items = append(items, a.groups[i].item())
	}
	return items
}

// list returns the document as an object, in version 2 of the form.
func (a *aggregated) list() *discoveryv2.APIGroupDiscoveryList {
	return &discoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: listKind, APIVersion: groupName + "/v2"}, Items: a.items()}
}

// read assembles the text, and computes the ETag from it.
func (a *aggregated) read() error {
	around := &discoveryv2.APIGroupDiscoveryList{Items: []discoveryv2.APIGroupDiscovery{}}
	untyped, err := json.Marshal(around)
	if err != nil {
		return fmt.Errorf("encoding the discovery document: %w", err)
	}
	around.TypeMeta = metav1.TypeMeta{Kind: listKind, APIVersion: groupName + "/v2"}
	typed, err := json.Marshal(around)
	if err != nil {
		return fmt.Errorf("encoding the discovery document: %w", err)
	}
	head, tail, _ := bytes.Cut(typed, []byte("[]"))
	text := append(append(make([]byte, 0, a.size.Load()+4096), head...), '[')
	for i := range a.groups {
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = a.groups[i].append(text); err != nil {
			return fmt.Errorf("encoding the discovery document: %w", err)
		}
	}
	text = append(append(append(text, ']'), tail...), '\n')
	a.size.Store(int64(len(text)))
	sum := sha512.New() // of the text without the marks of version 2
	before, _, _ := bytes.Cut(untyped, []byte("[]"))
	sum.Write(before)
	sum.Write(text[len(head) : len(text)-1])
	a.etag = fmt.Sprintf("%q", fmt.Sprintf("%X", sum.Sum(nil)))
	a.v2 = lazyDocument(func() runtime.Object { return a.list() })
	if len(a.groups) > 0 {
		keep(&a.v2.forms, plainJSON, text)
	}
	a.v2beta1 = lazyDocument(func() runtime.Object {
		older := a.list() // the types are the same
		older.APIVersion = groupName + "/v2beta1"
		return older
	})
	a.is.Store(true)
	return nil
}
