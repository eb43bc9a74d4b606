package verbs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// longSite returns a site with n config maps in two namespaces. Half of them have k=half, a tenth k=tenth,
// and the first 4,096 of a namespace e=exact. The database is the quickest that there is.
func longSite(t testing.TB, n int) *site {
	t.Helper()
	driver := memory.New(memory.Config{}).Open()
	t.Cleanup(func() {
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	})
	return (&site{servertest.NewSite(t, driver, sqlstore.Config{})}).fill(t, n)
}

// fill makes a long site.
func (s *site) fill(t testing.TB, n int) *site {
	t.Helper()
	var ops []sqlstore.Op
	for i := range n {
		namespace, name := []string{"ns", "other"}[i%2], fmt.Sprintf("c%06d", i)
		ops = append(ops, sqlstore.Op{
			Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "configmaps", Namespace: namespace, Name: name},
			Value: []byte(inNamespace(namespace, longMap(i, "1"))),
		})
		if len(ops) == 500 || i == n-1 {
			if _, err := s.Store.Write(t.Context(), ops...); err != nil {
				t.Fatal(err)
			}
			ops = nil
		}
	}
	return s
}

// longMap returns one of the objects of longSite, in namespace ns.
func longMap(i int, v string) string { return longMapLike(i, i, v) }

// longMapLike returns one with the labels of another.
func longMapLike(i, other int, v string) string {
	k := []string{"half", "half", "half", "half", "half", "tenth", "none", "none", "none", "none"}[other/2%10]
	e := ""
	if other%2 == 0 && other < 2*4096 {
		e = `,"e":"exact"`
	}
	return servertest.ConfigMap(fmt.Sprintf("c%06d", i), fmt.Sprintf(`"k":%q`, k)+e, v)
}

// change replaces an object of longSite in namespace ns, with other labels.
func (s *site) change(i int) {
	i -= i % 2
	s.Put("configmaps", "ns", fmt.Sprintf("c%06d", i), longMapLike(i, i+6, "changed"))
}

var longQueries = []string{
	"", "labelSelector=k%3Dhalf", "labelSelector=k!%3Dhalf", "labelSelector=k+in+(half,tenth)", "labelSelector=k%3Dtenth", "labelSelector=e%3Dexact",
	"fieldSelector=metadata.name!%3Dc000007", "labelSelector=k%3Dhalf&fieldSelector=metadata.namespace%3Dother", "labelSelector=k%3Dnothing",
}

// TestLongLists: a list that begins before all of it was looked at has the bytes of one that was
// gathered first, as a list with a limit is, in every form, with and without an index.
func TestLongLists(t *testing.T) {
	s := longSite(t, 20_000)
	s.Verbs.Answers.Forms.CBOR = true
	for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces/ns/configmaps"} {
		for _, query := range longQueries {
			for _, accept := range []string{
				codecs.JSON, codecs.YAML, codecs.Protobuf, codecs.CBOR, "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
			} {
				if accept == codecs.YAML && query != "" {
					continue // which is slow
				}
				get := func(query string) (string, string) {
					code, header, body := s.Fetch(t, path+"?"+query, "Accept", accept, "Accept-Encoding", "identity")
					if code != 200 {
						t.Fatal(code, string(body))
					}
					return string(body), header.Get("Content-Length")
				}
				gathered, length := get(query + "&limit=1000000")
				got, began := get(query)
				if got != gathered && (accept != codecs.CBOR || len(got) != len(gathered)) { // in CBOR order is by chance
					t.Errorf("%s?%s as %s: %d bytes, %d where all is gathered first", path, query, accept, len(got), len(gathered))
				}
				if accept == codecs.JSON && (began != length || query == "" && began != "" || strings.HasSuffix(query, "exact") && began == "") {
					t.Errorf("%s?%s: the length is %q, %q where all is gathered first", path, query, began, length)
				}
			}
			pretty, indented := "", ""
			for _, limit := range []string{"", "&limit=1000000"} {
				_, _, body := s.Fetch(t, path+"?pretty=true&"+query+limit)
				pretty, indented = indented, string(body)
			}
			if pretty != indented || !json.Valid([]byte(pretty)) {
				t.Errorf("%s?%s: pretty lists differ", path, query)
			}
		}
	}
}

// between is a response while which something happens.
type between struct {
	*httptest.ResponseRecorder
	happens func()
	writes  int
}

func (w *between) Write(b []byte) (int, error) {
	w.writes++
	w.happens()
	return w.ResponseRecorder.Write(b)
}

// TestWritesDuringLongLists: writes during a list do not show in it.
func TestWritesDuringLongLists(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := longSite(t, 20_000)
	h := servertest.Permitted(s.Verbs)
	get := func(query string, happens func()) (string, int) {
		w := &between{httptest.NewRecorder(), happens, 0}
		h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/configmaps?"+query, nil))
		if w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		return w.Body.String(), w.writes
	}
	for _, query := range longQueries {
		for range 3 {
			want, _ := get(query, func() {})
			got, writes := get(query, func() {
				for range 20 {
					s.change(random.IntN(22_000))
				}
				if it := s.Cache.Get("configmaps", "ns", fmt.Sprintf("c%06d", 2*random.IntN(10_000))); it != nil {
					key := sqlstore.Key{Resource: "configmaps", Namespace: it.Namespace, Name: it.Name}
					if _, err := s.Store.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Delete, Key: key, Expect: it.Revision}); err != nil {
						t.Fatal(err)
					}
				}
			})
			if got != want {
				t.Errorf("%s: a list of %d bytes has %d where others write meanwhile", query, len(want), len(got))
			}
			if writes < 5 && len(want) > 1<<20 {
				t.Errorf("%s: %d bytes in %d writes", query, len(want), writes)
			}
		}
	}
}

// keys returns the objects of a list, with what remains, and its token.
func (s *site) keys(t *testing.T, query string) (keys []string, l *listed) {
	t.Helper()
	code, _, b := s.Fetch(t, "/api/v1/configmaps?"+query)
	l = &listed{}
	if err := json.Unmarshal(b, l); err != nil || code != 200 {
		t.Fatalf("%s: %d %.200s", query, code, b)
	}
	for _, it := range l.Items {
		keys = append(keys, it.Metadata.Namespace+"/"+it.Metadata.Name+"="+it.Metadata.ResourceVersion)
	}
	return keys, l
}

// TestPagesOfLongLists: pages of any length, the rest behind a token without a limit among them, are
// together the list at the time of the first; without selectors they have the number of remaining items.
func TestPagesOfLongLists(t *testing.T) {
	s := longSite(t, 20_000)
	for round, query := range longQueries[:5] {
		want, _ := s.keys(t, query)
		for _, limits := range [][]int{{10_000, 5000, 4097}, {4096, 0}, {1, 0}, {7000, 7000, 0}} {
			s.pages(t, query, limits, want, round)
			want, _ = s.keys(t, query)
		}
	}
}

// pages reads a list that is to be want in pages, between which objects change.
func (s *site) pages(t *testing.T, query string, limits []int, want []string, round int) {
	t.Helper()
	var got []string
	next, version := "", ""
	for page := 0; page == 0 || next != ""; page++ {
		limit := limits[min(page, len(limits)-1)]
		q := query + "&continue=" + url.QueryEscape(next)
		if limit > 0 {
			q += fmt.Sprint("&limit=", limit)
		}
		keys, l := s.keys(t, q)
		got = append(got, keys...)
		left := l.Metadata.RemainingItemCount
		if counted := query == "" && l.Metadata.Continue != ""; counted != (left != nil) || counted && *left != int64(len(want)-len(got)) {
			t.Errorf("%q, limits %v: behind %d of %d items remain %v", query, limits, len(got), len(want), left)
		}
		if version == "" {
			version = l.Metadata.ResourceVersion
		}
		if next = l.Metadata.Continue; l.Metadata.ResourceVersion != version || limit > 0 && len(keys) > limit || limit == 0 && next != "" {
			t.Errorf("%q, limits %v: a page of %d items at %s, the first was at %s, token %q", query, limits, len(keys), l.Metadata.ResourceVersion, version, next)
		}
		s.change(100 * (round + page))
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%q, limits %v: %d items, want %d", query, limits, len(got), len(want))
	}
}

// TestLongListsOnSQLite: a long list and its pages are what they are to be on a real database too.
func TestLongListsOnSQLite(t *testing.T) {
	s := newSite(t).fill(t, 9000)
	for round, query := range longQueries[:2] {
		_, _, gathered := s.Fetch(t, "/api/v1/configmaps?"+query+"&limit=1000000")
		if _, _, got := s.Fetch(t, "/api/v1/configmaps?"+query); !bytes.Equal(got, gathered) {
			t.Errorf("%q: %d bytes, %d where all is gathered first", query, len(got), len(gathered))
		}
		for _, limits := range [][]int{{4097, 100, 0}, {1, 0}} {
			want, _ := s.keys(t, query)
			if len(want) <= 4096 {
				t.Fatalf("%q: %d items", query, len(want))
			}
			s.pages(t, query, limits, want, round)
		}
	}
}

// TestPackedLongLists: a list from kept pieces is the list, and the pieces are those of one that was
// gathered first.
func TestPackedLongLists(t *testing.T) {
	s := longSite(t, 20_000)
	s.Verbs.Answers.Packed = packed.New(64 << 20)
	s.Verbs.Answers.Compress = true
	for _, query := range longQueries {
		get := func(query, encoding string) []byte {
			_, header, body := s.Fetch(t, "/api/v1/configmaps?"+query, "Accept-Encoding", encoding)
			if header.Get("Content-Encoding") != "gzip" {
				return body
			}
			r, err := gzip.NewReader(bytes.NewReader(body))
			if err == nil {
				body, err = io.ReadAll(r)
			}
			if err != nil {
				t.Fatal(err)
			}
			return body
		}
		want := get(query+"&limit=1000000", "identity")
		get(query+"&limit=1000000", "gzip")
		before := s.Verbs.Answers.Packed.Size()
		if got := get(query, "gzip"); !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d", query, len(got), len(want))
		}
		if after := s.Verbs.Answers.Packed.Size(); after != before || before == 0 {
			t.Errorf("%s: %d bytes of pieces are kept, %d before", query, after, before)
		}
	}
}
