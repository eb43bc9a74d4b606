package answers_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestBookmark: a bookmark has the form of events, a revision, and at the end of the
// initial events an empty list in the form of the watch.
func TestBookmark(t *testing.T) {
	each(t, false, func(t *testing.T, k *kind, as codecs.Form) {
		if as.Type != codecs.JSON || as.Pretty || as.As == asTable {
			return // TestEvent covers the other forms of an object
		}
		q, _ := k.request("")
		v, err := k.answers().View(q, as)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []bool{false, true} {
			frame, err := v.Bookmark(77, end, true)
			if err != nil {
				t.Fatal(err)
			}
			eventType, object := event(t, as, frame)
			var got metav1.PartialObjectMetadata
			if err := json.Unmarshal(object, &got); err != nil {
				t.Fatal(err)
			}
			kind := k.r.Kind
			if as.As == metadata {
				kind = metadata.Kind
			}
			if eventType != "BOOKMARK" || got.ResourceVersion != "77" || got.Kind != kind || got.Name != "" {
				t.Errorf("%s", frame)
			}
			if (got.Annotations["k8s.io/initial-events-end"] == "true") != end {
				t.Errorf("%v: %s", end, frame)
			}
			if !end {
				continue
			}
			blueprint, err := base64.StdEncoding.DecodeString(got.Annotations["kubernetes.io/initial-events-list-blueprint"])
			if err != nil {
				t.Fatal(err)
			}
			var list metav1.PartialObjectMetadataList
			if err := json.Unmarshal(blueprint, &list); err != nil || list.Kind != kind+"List" || len(list.Items) != 0 || list.ResourceVersion != "" {
				t.Errorf("%v: %s", err, blueprint)
			}
		}
	})
}

// TestNoListOfEvents: a client that accepts only lists of metadata gets no event.
func TestNoListOfEvents(t *testing.T) {
	k := allKinds(t)[0]
	q, _ := k.request("")
	v, err := k.answers().View(q, codecs.Form{Type: codecs.JSON, As: metalist})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Event("ADDED", k.items[0], true); !errors.Is(err, answers.ErrNoList) {
		t.Error(err)
	}
	if _, err := v.Bookmark(1, true, true); !errors.Is(err, answers.ErrNoList) {
		t.Error(err)
	}
}

// untouched is a response that nothing may be written to.
type untouched struct {
	t *testing.T
	http.ResponseWriter
}

func (w untouched) WriteHeader(int) { w.t.Error("the answer began") }
func (w untouched) Write(b []byte) (int, error) {
	w.t.Errorf("the answer began: %.100q", b)
	return len(b), nil
}

// TestFailsBeforeItBegins: an object that cannot be read or converted is an error in every form,
// before anything is written.
func TestFailsBeforeItBegins(t *testing.T) {
	each(t, true, func(t *testing.T, k *kind, as codecs.Form) {
		key := sqlstore.Key{Resource: k.r.Storage.Key, Namespace: "ns", Name: "broken"}
		broken := cache.NewItem(own, &sqlstore.Row{Key: key, Revision: 5, Value: []byte(`{"kind":`)}, k.r)
		page := &objects.Page{Items: append([]*cache.Item{broken}, k.items...), Remaining: -1}
		for what, fails := range map[string]func() error{
			"a corrupt item in a list": func() error {
				q, w := k.request("")
				q.W = untouched{t, w}
				return k.answers().Page(q, as, page)
			},
			"a corrupt item": func() error {
				q, w := k.request("")
				q.W = untouched{t, w}
				one := as
				if one.As == metalist {
					one.As = metadata
				}
				return k.answers().Item(q, one, 200, broken)
			},
		} {
			if err := fails(); err == nil || !strings.Contains(err.Error(), "not decodable") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if k.name != "upgraded" {
			return
		}
		q, w := k.request("")
		q.W = untouched{t, w}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		q.R = q.R.WithContext(ctx)
		if err := k.answers().Page(q, as, &objects.Page{Items: k.items, Remaining: -1}); !errors.Is(err, context.Canceled) {
			t.Errorf("a conversion that fails: %v", err)
		}
	})
}

// counted are items that count how often one is decoded.
type counted struct {
	answers.Items
	decoded int
}

func (c *counted) DecodeForColumns(ctx context.Context, r *kinds.Resource, it *cache.Item) (kinds.Object, error) {
	c.decoded++
	return c.Items.DecodeForColumns(ctx, r, it)
}

// TestKept: an object that was answered in a form once is answered again without decoding or encoding.
func TestKept(t *testing.T) {
	each(t, true, func(t *testing.T, k *kind, as codecs.Form) {
		if as.Type == codecs.YAML || as.Type == codecs.CBOR && as.As == metalist || k.custom() && as.Type == codecs.Protobuf {
			return // these are made again
		}
		a, made := k.answers(), 0
		c := &counted{Items: a.Items}
		a.Items = c
		r := *k.r
		r.New = func() kinds.Object {
			made++
			return k.r.New()
		}
		first := 0
		for again := range 3 {
			q, _ := k.request("")
			q.Resource = &r
			if err := a.Page(q, as, &objects.Page{Items: append([]*cache.Item(nil), k.items...), Remaining: -1}); err != nil {
				t.Fatal(err)
			}
			if again == 0 {
				first = made + c.decoded
			}
		}
		if made+c.decoded > first {
			t.Errorf("%d objects were made or decoded at first, %d later", first, made+c.decoded-first)
		}
	})
}

// widest records the largest write.
type widest struct {
	http.ResponseWriter
	most, all int
}

func (w *widest) Write(b []byte) (int, error) {
	w.most, w.all = max(w.most, len(b)), w.all+len(b)
	return len(b), nil
}

// TestPieces: a long list goes out in bounded pieces in every form.
func TestPieces(t *testing.T) {
	k := allKinds(t)[0]
	var values []string
	for i := range 300 {
		values = append(values, fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%d","namespace":"ns","uid":"u%d","creationTimestamp":null,"annotations":{"a":%q}},"data":{"v":%q}}`,
			i, i, strings.Repeat("a", 4000), strings.Repeat("v", 4000)))
	}
	k.items = items(k.r, values...)
	for _, as := range formsOf(k, true) {
		q, w := k.request("")
		out := &widest{ResponseWriter: w}
		q.W = out
		if err := k.answers().Page(q, as, &objects.Page{Items: k.items, Remaining: -1}); err != nil {
			t.Fatal(err)
		}
		if out.all < 300*4000 || out.most > answers.Chunk+2*len(values[0]) {
			t.Errorf("%s: %d bytes, up to %d at once", name(as), out.all, out.most)
		}
	}
}

// TestBodiesOfOthers: objects that are not stored are shown by themselves, or their
// metadata, and what an update let go has columns.
func TestBodiesOfOthers(t *testing.T) {
	k := allKinds(t)[1]
	a := k.answers()
	for _, as := range []codecs.Form{{Type: codecs.JSON}, {Type: codecs.JSON, As: metadata}, {Type: codecs.JSON, As: asTable}} {
		q, w := k.request("includeObject=Metadata")
		if err := a.Ended(q, as, 201, k.stored(t, k.items[0])); err != nil {
			t.Fatal(err)
		}
		if diff := same(t, k, as, w.Body.Bytes(), encoded(t, as, k.shown(t, as.As, 0))); diff != "" || w.Code != 201 {
			t.Error(w.Code, diff)
		}
	}
	q, w := k.request("includeObject=nothing")
	q.W = untouched{t, w}
	if err := a.Ended(q, codecs.Form{Type: codecs.JSON, As: asTable}, 201, k.stored(t, k.items[0])); err == nil {
		t.Error("includeObject is not looked at")
	}
	q, w = k.request("")
	released := 0
	q.Release = func() { released++ }
	st := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
	if err := a.Object(q, codecs.Form{Type: codecs.JSON, As: metadata}, 200, st); err != nil || !bytes.Contains(w.Body.Bytes(), []byte(`"status":"Success"`)) {
		t.Errorf("%v: %s", err, w.Body)
	}
	if q.Done(); released != 1 {
		t.Errorf("what the body took was given back %d times", released)
	}
}

// TestKeysOfEvents: equal watches share frames; in CBOR by chance, in a few groups.
func TestKeysOfEvents(t *testing.T) {
	k := allKinds(t)[0]
	for mediaType, most := range map[string]int{codecs.JSON: 1, codecs.Protobuf: 1, codecs.CBOR: 4} {
		keys := map[answers.Key]bool{}
		for range 200 {
			q, _ := k.request("")
			v, err := k.answers().View(q, codecs.Form{Type: mediaType})
			if err != nil {
				t.Fatal(err)
			}
			keys[v.Key(false)] = true
		}
		if len(keys) != most {
			t.Errorf("%s: frames of %d groups, want %d", mediaType, len(keys), most)
		}
	}
}

// TestLongPage: a list of very many items is written without a Content-Length before all are read, if
// nothing is known to be wrong with them; else all are read first.
func TestLongPage(t *testing.T) {
	for _, k := range allKinds(t) {
		p := &objects.Page{Revision: 1234, Items: slices.Repeat(k.items[:1], 5000), Remaining: -1}
		var bodies []string
		for _, p.Intact = range []bool{false, true} {
			q, w := k.request("")
			if err := k.answers().Page(q, codecs.Form{Type: codecs.JSON, As: whole}, p); err != nil {
				t.Fatal(err)
			}
			length := w.Header().Get("Content-Length")
			if estimated := p.Intact && k.r.HasGoType() && objects.Clean(k.r, k.items[0]); estimated != (length == "") {
				t.Errorf("%s, sound: %v: the length is %q", k.name, p.Intact, length)
			}
			if length != "" && length != strconv.Itoa(w.Body.Len()) {
				t.Errorf("%s: %d bytes, Content-Length %s", k.name, w.Body.Len(), length)
			}
			bodies = append(bodies, w.Body.String())
		}
		if bodies[0] != bodies[1] || !json.Valid([]byte(bodies[0])) {
			t.Errorf("%s: two bodies of the same list differ", k.name)
		}
	}
	k := allKinds(t)[0]
	bad := cache.NewItem(own, &sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "n", Name: "x"}, Value: []byte("{"), Revision: 3}, k.r)
	p := &objects.Page{Revision: 1234, Items: append(slices.Repeat(k.items[:1], 5000), bad), Remaining: -1}
	q, w := k.request("")
	if err := k.answers().Page(q, codecs.Form{Type: codecs.JSON, As: whole}, p); err == nil || w.Body.Len() > 0 {
		t.Errorf("the last of 5,001 items cannot be read, and the answer has begun: %v, %d bytes", err, w.Body.Len())
	}
}
