package aggregator

import (
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/request"
)

// leavesPath reports whether a path may have another meaning for the server that receives it than for the
// authorizer. Both use the decoded path, segment by segment; but servers that do not use Kubernetes' library
// may clean it first.
//
// A segment that leads elsewhere is never sent: "." or "..", also with parameters after a semicolon, among
// backslashes, or percent-encoded once more. Empty segments, backslashes, and slashes that are encoded once
// more are sent if they come after all authorized parts, as in the paths of proxies: there they do not change
// the meaning.
func leavesPath(method, path string) bool {
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") && !strings.ContainsAny(path, `;\%`) {
		return false
	}
	again := decoded(path)
	asked := meaning(method, path).plain()
	slashes := strings.NewReplacer(`\`, "/")
	return slices.ContainsFunc([]string{path, slashes.Replace(path), again, slashes.Replace(again)}, func(read string) bool { return leavesSegment(read) || meaning(method, merged(read)).plain() != asked })
}

func leavesSegment(path string) bool {
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

// attributes holds the attributes of a request that the server passes to an authorizer.
type attributes struct {
	path, verb                                          string
	group, version, namespace, resource, sub, name, odd string
}

// meaning returns the meaning of a path; unknown is one too.
func meaning(method, path string) attributes {
	i, err := request.Parse(method, &url.URL{Path: path})
	switch {
	case err != nil:
		return attributes{odd: path}
	case !i.IsResource:
		return attributes{path: i.Path, verb: i.Verb}
	}
	return attributes{verb: i.Verb, group: i.Group, version: i.Version, namespace: i.Namespace, resource: i.Resource, sub: i.Subresource, name: i.Name}
}

// plain decodes the parts once more.
func (a attributes) plain() attributes {
	for _, part := range []*string{&a.path, &a.odd, &a.group, &a.version, &a.namespace, &a.resource, &a.sub, &a.name} {
		*part = decoded(*part)
	}
	return a
}

// decoded decodes a text leniently: invalid encodings stay, and the rest is decoded.
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
