package verbs_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestPackedLists: a compressed list that is put together from kept pieces is the
// list as it is without compression, through changes of the collection.
func TestPackedLists(t *testing.T) {
	s := newSite(t)
	s.Verbs.Answers.Packed = packed.New(8 << 20)
	s.Verbs.Answers.Compress = true
	put := func(i int, v string) {
		name := fmt.Sprintf("c%03d", i)
		s.Put("configmaps", "ns", name, servertest.ConfigMap(name, `"k":"x"`, v+strings.Repeat("v", 2000)))
	}
	for i := range 200 {
		put(i, "1")
	}
	get := func(query, accept string, zipped bool) []byte {
		encoding := "identity"
		if zipped {
			encoding = "gzip"
		}
		code, header, body := s.Fetch(t, "/api/v1/namespaces/ns/configmaps?resourceVersion=0&"+query, "Accept", accept, "Accept-Encoding", encoding)
		if code != 200 || header.Get("Content-Type") != accept {
			t.Fatal(code, header)
		}
		if !zipped {
			return body
		}
		if header.Get("Content-Encoding") != "gzip" || header.Get("Vary") != "Accept-Encoding" {
			t.Fatal(header)
		}
		from := bytes.NewReader(body)
		r, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		r.Multistream(false)
		out, err := io.ReadAll(r)
		if err != nil || from.Len() != 0 {
			t.Fatalf("%v, %d bytes behind", err, from.Len())
		}
		return out
	}
	kept := 0
	check := func(when string) {
		t.Helper()
		for _, accept := range []string{codecs.JSON, codecs.Protobuf} {
			for _, query := range []string{"", "labelSelector=k%3Dx", "fieldSelector=metadata.name!%3Dc007", "limit=150&resourceVersionMatch=NotOlderThan"} {
				plain := get(query, accept, false)
				for range 2 {
					if got := get(query, accept, true); !bytes.Equal(got, plain) {
						t.Errorf("%s, %s as %s: another list", when, query, accept)
					}
				}
			}
		}
		if size := s.Verbs.Answers.Packed.Size(); size <= kept {
			t.Errorf("%s: %d bytes are kept, %d before", when, size, kept)
		} else {
			kept = size
		}
	}
	check("at first")
	put(100, "2")
	check("after an update")
	put(200, "1")
	check("after another object")
	put(7, "3")
	check("after an update of the one left out")
}
