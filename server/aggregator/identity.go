package aggregator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/relay"
)

// The headers that name the user to an aggregated server. The published authentication configuration names
// them too.
const (
	UserHeader  = "X-Remote-User"
	GroupHeader = "X-Remote-Group"
	UIDHeader   = "X-Remote-Uid"
	ExtraPrefix = "X-Remote-Extra-"
)

// Introduce removes a client's credentials, and its own claims about its identity, from headers, and adds its
// authenticated identity.
func (a *Aggregator) Introduce(h http.Header, who *authx.Identity) {
	relay.StripRequest(h, a.publishedHeaders().has)
	h[UserHeader] = []string{who.Name}
	if len(who.Groups) > 0 {
		h[GroupHeader] = slices.Clone(who.Groups)
	}
	if a.cfg.TellUID && who.UID != "" {
		h[UIDHeader] = []string{who.UID}
	}
	for key, values := range who.Extra {
		for _, v := range values {
			h.Add(ExtraPrefix+escaped(key), v)
		}
	}
}

// escaped encodes a key as part of a header name: forbidden characters, and the percent sign, are
// percent-encoded.
func escaped(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c != '%' && httpguts.IsTokenRune(rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
