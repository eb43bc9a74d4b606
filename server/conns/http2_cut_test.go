package conns_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/conns"
)

// TestTokenCutByClient: a client whose windows cut the token so that it is not found
// breaks off its own answer alone. The direct way is not given up for it.
func TestTokenCutByClient(t *testing.T) {
	for left := uint32(1); left < 4; left++ {
		t.Run(fmt.Sprintf("%d bytes left", left), func(t *testing.T) {
			d, n, logged := measured(conns.DeliveryConfig{})
			d.SetTokenPatience(50 * time.Millisecond)
			_, client, url := siteOf(t, d, true, 0, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/watch" {
					sized(w, r)
					return
				}
				answering(d, 3)(w, r)
			})
			const grown = 2 << 20
			initial := grown + 65535 - left
			p := newPeer(t, url, initial, grown)
			what, is := has(int(initial))
			p.until(p.get("/3000000"), what, is) // takes the connection's window, but for what is left
			watch := p.get("/watch")
			what, is = has(int(left))
			p.until(watch, what, is)
			p.grow(0, 1000)
			p.until(watch, "reset", func(s *peerStream) bool { return s.reset != nil })
			if !d.Direct() || logged.Len() > 0 {
				t.Errorf("the direct way was given up: %s", logged)
			}
			resp, err := client.Get(url + "/watch")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); string(got) != "0\n1\n2\n" || err != nil {
				t.Errorf("the next answer: %q %v", got, err)
			}
			n.want(t, map[string]int{"mode direct=true": 1, "http2=true direct=true": 1})
		})
	}
}
