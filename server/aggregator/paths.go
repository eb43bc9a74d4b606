package aggregator

import (
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/request"
)

// strays reports whether a path may mean something else to the server that it is sent to than
// to the authorizer that was asked about it. Both take the decoded path, segment by
// segment; but servers that are not made of Kubernetes' own library may clean it first.
//
// A segment that leads elsewhere is never sent: "." or "..", also with parameters behind a
// semicolon, among backslashes, or percent-encoded once more. Empty segments, backslashes
// and slashes that are encoded once more are sent where they stand behind everything that
// was authorized, as in the paths of proxies: with or without them that is the same.
func strays(method, path string) bool {
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") && !strings.ContainsAny(path, `;\%`) {
		return false
	}
	again := decoded(path)
	asked := meaning(method, path).plain()
	slashes := strings.NewReplacer(`\`, "/")
	return slices.ContainsFunc([]string{path, slashes.Replace(path), again, slashes.Replace(again)}, func(read string) bool { return leadsElsewhere(read) || meaning(method, merged(read)).plain() != asked })
}

func leadsElsewhere(path string) bool {
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if segment, _, _ = strings.Cut(segment, ";"); segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// merged makes one slash of several.
func merged(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if path[i] != '/' || i == 0 || path[i-1] != '/' {
			b.WriteByte(path[i])
		}
	}
	return b.String()
}

// what has the attributes that an authorizer gets.
type what struct {
	path, verb                                          string
	group, version, namespace, resource, sub, name, odd string
}

// meaning is what a path means; unknown is a meaning too.
func meaning(method, path string) what {
	i, err := request.Parse(method, &url.URL{Path: path})
	switch {
	case err != nil:
		return what{odd: path}
	case !i.IsResource:
		return what{path: i.Path, verb: i.Verb}
	}
	return what{verb: i.Verb, group: i.Group, version: i.Version, namespace: i.Namespace, resource: i.Resource, sub: i.Subresource, name: i.Name}
}

// plain decodes the parts once more.
func (w what) plain() what {
	for _, part := range []*string{&w.path, &w.odd, &w.group, &w.version, &w.namespace, &w.resource, &w.sub, &w.name} {
		*part = decoded(*part)
	}
	return w
}

// decoded decodes a text as those do who take the most for an encoding: what is none stays,
// and the rest is decoded all the same.
func decoded(s string) string {
	first := strings.IndexByte(s, '%')
	if first < 0 {
		return s
	}
	b := []byte(s[:first])
	for i := first; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b = append(b, c...)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
