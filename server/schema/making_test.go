package schema_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/schema"
)

// slow has documents whose custom kinds are made only when the test allows it.
type slow struct {
	*schema.Documents
	catalogue *kinds.Catalogue
	begun     atomic.Int32
	kinds     chan string // in the order in which they were described
	goOn      chan struct{}
}

// newSlow has one document be made at a time.
func newSlow(t *testing.T) *slow {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	lamps, boats := defined(t, "example.com", "lamps", "Lamp", "color"), defined(t, "sea.example.com", "boats", "Boat", "sail")
	s := &slow{catalogue: kinds.NewCatalogue(append(append(builtin.Resources(), lamps...), boats...)), kinds: make(chan string, 1000), goOn: make(chan struct{})}
	s.Documents = describing(s.catalogue, false)
	of := s.CustomSchema
	s.CustomSchema = func(r *kinds.Resource) json.RawMessage {
		s.begun.Add(1)
		s.kinds <- r.Kind
		<-s.goOn
		return of(r)
	}
	s.Fail = func(w http.ResponseWriter, _ *http.Request, err error) { http.Error(w, err.Error(), 499) }
	return s
}

const lampsDocument, boatsDocument = "/openapi/v3/apis/example.com/v1", "/openapi/v3/apis/sea.example.com/v1"

// asks sends a request of a user in a goroutine of its own.
func (s *slow) asks(ctx context.Context, user, path string) chan *httptest.ResponseRecorder {
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		ctx := request.With(ctx, &request.Scope{User: &authx.Identity{Name: user}})
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		w := httptest.NewRecorder()
		if path == "/openapi/v2" {
			s.ServeV2(w, r)
		} else {
			s.ServeV3(w, r)
		}
		answered <- w
	}()
	synctest.Wait()
	return answered
}

// code returns the status of an answer, 0 if there is none yet.
func code(answered chan *httptest.ResponseRecorder) int {
	synctest.Wait()
	select {
	case w := <-answered:
		return w.Code
	default:
		return 0
	}
}

// TestDocumentsAreMadeAside: while a document is made, of whichever version, all finished documents are
// served, and waiting requests may leave. It is made once for all of them.
func TestDocumentsAreMadeAside(t *testing.T) {
	for _, path := range []string{lampsDocument, "/openapi/v2"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlow(t)
			for _, ready := range []string{"/openapi/v3", "/openapi/v3/version"} {
				if got := code(s.asks(t.Context(), "a", ready)); got != http.StatusOK {
					t.Fatalf("%s: %d", ready, got)
				}
			}
			first := s.asks(t.Context(), "a", path)
			ctx, leave := context.WithCancel(t.Context())
			leaves, stays := s.asks(ctx, "a", path), s.asks(t.Context(), "b", path)
			for _, ready := range []string{"/openapi/v3", "/openapi/v3/version"} {
				if got := code(s.asks(t.Context(), "b", ready)); got != http.StatusOK {
					t.Errorf("%s while %s is made: %d", ready, path, got)
				}
			}
			leave()
			if got := code(leaves); got != 499 {
				t.Errorf("who leaves: %d", got)
			}
			close(s.goOn)
			if one, two := code(first), code(stays); one != http.StatusOK || two != http.StatusOK {
				t.Errorf("%s: %d and %d", path, one, two)
			}
			want := int32(1)
			if path == "/openapi/v2" {
				want = 2 // kinds
			}
			if n := s.begun.Load(); n != want {
				t.Errorf("%s was made %d times", path, n)
			}
		})
	}
}

// TestMakersMayLeave: when the request that is making a document ends, another one that waits for it makes
// it; and a document of version 2 that no request waits for is not finished.
func TestMakersMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		makes := s.asks(t.Context(), "a", boatsDocument)
		ctx, leave := context.WithCancel(t.Context())
		next, waits := s.asks(ctx, "a", lampsDocument), s.asks(t.Context(), "b", lampsDocument)
		leave()
		if got := code(next); got != 499 {
			t.Errorf("who was next: %d", got)
		}
		close(s.goOn)
		if one, two := code(makes), code(waits); one != http.StatusOK || two != http.StatusOK {
			t.Errorf("%d and %d", one, two)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		ctx, leave := context.WithCancel(t.Context())
		makes := s.asks(ctx, "a", "/openapi/v2")
		leave()
		close(s.goOn)
		if got := code(makes); got != 499 || s.begun.Load() != 1 {
			t.Errorf("%d, and %d of two kinds were described", got, s.begun.Load())
		}
	})
}

// TestTurnsOfWaiters: a user waits for a document no longer because another user, who requests many more,
// requested it first.
func TestTurnsOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		const others = 20
		all := slices.Concat(builtin.Resources(), defined(t, "example.com", "lamps", "Lamp", "color"), defined(t, "sea.example.com", "boats", "Boat", "sail"))
		for i := range others {
			all = append(all, defined(t, fmt.Sprintf("g%d.example.com", i), "cars", "Car", "wheels")...)
		}
		s.catalogue.Set(all)
		asked := []chan *httptest.ResponseRecorder{s.asks(t.Context(), "a", boatsDocument)}
		for i := range others {
			asked = append(asked, s.asks(t.Context(), "a", fmt.Sprintf("/openapi/v3/apis/g%d.example.com/v1", i)))
		}
		for _, user := range []string{"a", "b", "c", "b"} {
			asked = append(asked, s.asks(t.Context(), user, lampsDocument))
		}
		close(s.goOn)
		for _, one := range asked {
			if got := code(one); got != http.StatusOK {
				t.Errorf("an answer: %d", got)
			}
		}
		if first, then, n := <-s.kinds, <-s.kinds, s.begun.Load(); first != "Boat" || then != "Lamp" || n != others+2 {
			t.Errorf("made were first %s, then %s, and %d in all", first, then, n)
		}
		if n := s.Waiting(); n != 0 {
			t.Errorf("%d count as waiting when all have gone", n)
		}
	})
}

// TestDocumentsAreOfNow: a request after a change of the catalogue does not get a document that was begun
// before.
func TestDocumentsAreOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		first := s.asks(t.Context(), "a", lampsDocument)
		s.catalogue.Set(append(builtin.Resources(), defined(t, "example.com", "lamps", "Lamp", "watts")...))
		then := s.asks(t.Context(), "a", lampsDocument)
		close(s.goOn)
		synctest.Wait()
		one, two := (<-first).Body.String(), (<-then).Body.String()
		if !strings.Contains(one, `"color"`) || !strings.Contains(two, `"watts"`) {
			t.Error("the answers are of other states")
		}
	})
}

// TestWaitersAreBounded: if too many requests wait for documents, the last are refused, by user and in all.
func TestWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		asked := make([]chan *httptest.ResponseRecorder, 0, schema.MostWaiters)
		for _, user := range []string{"a", "b"} {
			for range schema.MostWaiters / 2 {
				asked = append(asked, s.asks(t.Context(), user, lampsDocument))
			}
			for _, path := range []string{lampsDocument, boatsDocument, "/openapi/v2"} {
				if got := code(s.asks(t.Context(), user, path)); got != 499 {
					t.Errorf("one of %s too many: %d", user, got)
				}
			}
		}
		if got := code(s.asks(t.Context(), "c", lampsDocument)); got != 499 {
			t.Errorf("one too many in all: %d", got)
		}
		close(s.goOn)
		for _, one := range asked {
			if got := code(one); got != http.StatusOK {
				t.Fatalf("who waits: %d", got)
			}
		}
		if n := s.Waiting(); n != 0 {
			t.Errorf("%d count as waiting when all have gone", n)
		}
	})
}

// restless are servers whose documents change with each request.
type restless struct {
	others
	t    *testing.T
	asks int
}

func (r *restless) OpenAPI2() ([]*schema.Swagger, uint64) {
	r.asks++
	return []*schema.Swagger{read(r.t, part(fmt.Sprint("/apis/x/a", r.asks), "string"))}, uint64(r.asks)
}

// TestWaitersAreDone: a request that waits while an older document is made gets the next one, even if that is
// out of date by then, too.
func TestWaitersAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		s.Others = &restless{t: t}
		first := s.asks(t.Context(), "a", "/openapi/v2")
		var asked []chan *httptest.ResponseRecorder
		for range 10 {
			asked = append(asked, s.asks(t.Context(), "b", "/openapi/v2"))
		}
		close(s.goOn)
		synctest.Wait()
		tags := map[string]bool{(<-first).Header().Get("Etag"): true}
		for _, one := range asked {
			tags[(<-one).Header().Get("Etag")] = true
		}
		if len(tags) != 2 {
			t.Errorf("%d documents were made for one who asked and ten who waited", len(tags))
		}
	})
}

// TestGroupsThatAreGone: of a group that no definition has any more nothing is served, nor kept.
func TestGroupsThatAreGone(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	d := describing(catalogue, false)
	ask := func(path string) int {
		w := httptest.NewRecorder()
		d.ServeV3(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	ask("/openapi/v3")
	before := d.Remembered()
	for i := range 3 {
		group := fmt.Sprintf("g%d.example.com", i)
		catalogue.Set(append(builtin.Resources(), defined(t, group, "lamps", "Lamp", "color")...))
		if index, of := ask("/openapi/v3"), ask("/openapi/v3/apis/"+group+"/v1"); index != http.StatusOK || of != http.StatusOK {
			t.Fatalf("%d and %d", index, of)
		}
		catalogue.Set(builtin.Resources())
		if of := ask("/openapi/v3/apis/" + group + "/v1"); of != http.StatusNotFound {
			t.Errorf("of a group that is gone: %d", of)
		}
	}
	ask("/openapi/v3")
	if now := d.Remembered(); now != before {
		t.Errorf("%d documents are remembered, %d before there were other groups", now, before)
	}
}
