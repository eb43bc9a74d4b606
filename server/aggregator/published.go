package aggregator

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/relay"
)

// published are headers that aggregated servers believe when this one sends them, as all
// servers of the cluster have published together: one may know other names
// than this one.
type published struct {
	item     *cache.Item // the ConfigMap from which they were read; nil: there was none
	names    []string    // as relay.Plain makes them
	prefixes []string
}

// overrides are headers by which some servers replace the method or the path of a request. The authorizer has not seen their values.
var overrides = map[string]bool{
	"x-http-method-override": true, "x-http-method": true, "x-method-override": true, "x-forwarded-method": true, "x-original-method": true,
	"x-original-url": true, "x-original-uri": true, "x-rewrite-url": true,
}

// has reports whether a header, named as relay.Plain does, is one of them, or one of overrides: a client may not set it.
func (p *published) has(name string) bool {
	return overrides[name] || slices.Contains(p.names, name) || slices.ContainsFunc(p.prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// publishedHeaders returns the present headers. They are read again when the ConfigMap has changed.
func (a *Aggregator) publishedHeaders() *published {
	item := a.cfg.Cache.Get("configmaps", metav1.NamespaceSystem, "extension-apiserver-authentication")
	if p := a.headers.Load(); p != nil && p.item == item {
		return p
	}
	p := &published{item: item}
	var m corev1.ConfigMap
	if item != nil {
		if _, err := a.cfg.Cache.JSON().Decode(item.JSON(), &m, codecs.Ignore); err != nil {
			m.Data = nil // an extension server that cannot read it trusts no headers
		}
	}
	for _, key := range []string{"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers"} {
		p.names = append(p.names, plainList(m.Data[key])...)
	}
	p.prefixes = plainList(m.Data["requestheader-extra-headers-prefix"])
	a.headers.Store(p)
	return p
}

// plainList reads a list of names. It ignores a value that is not a list.
func plainList(text string) (names []string) {
	var list []string
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	for _, name := range list {
		if name != "" { // as a prefix it would match all headers
			names = append(names, relay.Plain(name))
		}
	}
	return names
}
