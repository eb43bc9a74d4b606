package aggregator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

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
		if c := key[i]; c != '%' && isToken(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// isToken reports whether a byte may be part of the name of a header.
func isToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$&'*+-.^_`|~", c) >= 0
}
