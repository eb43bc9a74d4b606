package framing_test

import (
	"compress/gzip"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/codecs/framing"
)

func TestBody(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", framing.CompressFrom/16)
	for _, tc := range []struct {
		name, accept string
		gate         bool
		pieces       []string
		zipped       bool
	}{
		{"small", "gzip", true, []string{"a", "b"}, false},
		{"nothing", "gzip", true, nil, false},
		{"exactly the limit", "gzip", true, []string{big}, false},
		{"one over the limit", "gzip", true, []string{big + "x"}, true},
		{"in pieces", "deflate, gzip", true, []string{"a", big, "b"}, true},
		{"gate off", "gzip", false, []string{big + "x"}, false},
		{"not asked for", "", true, []string{big + "x"}, false},
		{"with a weight, as stock servers", "gzip;q=1", true, []string{big + "x"}, false},
	} {
		for range 2 { // the second one gets a used compressor
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept-Encoding", tc.accept)
			body := framing.NewBody(w, r, 202, tc.gate)
			for _, p := range tc.pieces {
				if n, err := io.WriteString(body, p); n != len(p) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := body.Close(); err != nil {
				t.Fatal(err)
			}
			var content io.Reader = w.Body
			if (w.Header().Get("Content-Encoding") == "gzip") != tc.zipped || (w.Header().Get("Vary") != "") != tc.zipped || w.Code != 202 {
				t.Fatalf("%s: %d %v", tc.name, w.Code, w.Header())
			}
			if tc.zipped {
				var err error
				if content, err = gzip.NewReader(w.Body); err != nil {
					t.Fatal(err)
				}
			}
			got, err := io.ReadAll(content)
			if err != nil || string(got) != strings.Join(tc.pieces, "") {
				t.Fatalf("%s: %d bytes, %v", tc.name, len(got), err)
			}
		}
	}
}
