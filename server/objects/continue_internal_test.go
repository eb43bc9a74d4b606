package objects

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
)

func FuzzContinue(f *testing.F) {
	f.Add(encodeContinue(5, false, cache.After("ns", "a")), false)
	f.Add(encodeContinue(newestState, true, cache.After("ns", "a")), true)
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}`)), true)
	f.Add("garbage", false)
	f.Fuzz(func(t *testing.T, token string, spans bool) {
		revision, at, err := decodeContinue(token, "ns", spans)
		if err != nil {
			return
		}
		if revision == 0 {
			t.Error("a token without a version")
		}
		if !spans && at.Namespace != "ns" || strings.Contains("/"+at.Namespace+"/", "/../") {
			t.Errorf("the token leads out of its collection: %q", at)
		}
		if at.Name == "" {
			return // a whole namespace: servers do not make such tokens
		}
		again, back, err := decodeContinue(encodeContinue(revision, spans, at), "ns", spans)
		if err != nil || again != revision || back != at {
			t.Errorf("%q: %d %q, then %d %q, %v", token, revision, at, again, back, err)
		}
	})
}
