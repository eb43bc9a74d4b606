// Package transfer translates between the entries that other API servers store in etcd and the rows of this one.
//
//	transfer.go  the layout of keys, for both directions: which resource is stored where
//	kept.go      internal data of a server, which is not transferred
//	read.go      from an entry to a row, with the claims that go with it
//	value.go     from the bytes of a value to the JSON that is stored
//	legacy.go    values in versions of the past
//	write.go     from a row to the entry that a stock server serves
//	customs.go   whether custom resources fit the definitions that came with them
//	report.go    counts of results, by name
//
// A transferred object equals the stored one, field by field, including UIDs, times, managed fields and generations;
// an object that cannot be transferred is reported with the reason, which contains only names and numbers of the value.
//
// The form of exported entries (Writer.Entry): the key is PREFIX/RESOURCE/[NAMESPACE/]NAME with
// the resource names of a stock server ("services/specs", "minions"), custom ones
// PREFIX/GROUP/PLURAL/[NAMESPACE/]NAME; the value is Protobuf with its prefix "k8s\x00" in
// the version that is stored here for built-in kinds, and JSON ended by a newline for
// CustomResourceDefinitions, APIServices and custom resources, as kube-apiserver 1.32
// writes them. Rows that are no objects (claims, resource "~...") have no entry: a stock
// server makes its ranges anew from the Services. Keys of etcd have another order than
// rows ("a-b/" is before "a/"), so a caller that needs them in order has to sort.
//
// Cause: an operator, by a command; no client. Translating a value takes a few times its size in memory, and
// foreign.MaxValue bounds the sizes. It starts no goroutine.
package transfer

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore"
)

// DefaultPrefix is the prefix of kube-apiserver's keys unless --etcd-prefix sets another.
const DefaultPrefix = "/registry"

// Storages of which more must be known than of others.
const (
	definitionStorage = "customresourcedefinitions.apiextensions.k8s.io"
	serviceStorage    = "apiservices.apiregistration.k8s.io"
	eventStorage      = "events"
	leaseStorage      = "leases.coordination.k8s.io"
)

// layout reads and writes keys and values.
type layout struct {
	prefix    string // without a slash at its end
	catalogue *kinds.Catalogue
	objects   *objects.Store
	json      json.Codec
	protobuf  protobuf.Codec
	places    map[string]*kinds.Resource // "services/specs" -> Services as they are stored
}

func newLayout(prefix string) *layout {
	prefix = cmp.Or(prefix, DefaultPrefix)
	l := &layout{prefix: "/" + strings.Trim(prefix, "/"), catalogue: kinds.NewCatalogue(builtin.Config{}.All()), places: map[string]*kinds.Resource{}}
	l.json = json.New(json.Settings{View: release.Default.Whole()})
	l.objects = objects.New(l.catalogue, nil, cache.NewWith(l.catalogue, cache.Config{JSON: l.json}))
	l.protobuf = protobuf.Codec{JSON: l.json}
	for _, r := range l.catalogue.Known() {
		if r.Storage != nil {
			home := l.catalogue.ByStorage(r.Storage.Key)
			l.places[placeOf(home)] = home
		}
	}
	return l
}

// placeOf returns the part of a key that names a built-in resource.
func placeOf(r *kinds.Resource) string {
	return strings.TrimSuffix(strings.TrimPrefix(r.RegistryKey("", ""), DefaultPrefix+"/"), "/")
}

// path returns a key without the prefix; ok is false for one that is not below it.
func (l *layout) path(key string) (string, bool) { return strings.CutPrefix(key, l.prefix+"/") }

// located is a key that was understood.
type located struct {
	resource *kinds.Resource // of the stored version; nil for a custom resource
	key      sqlstore.Key
}

// locate finds the object that a path names. ok is false where no resource is stored there.
func (l *layout) locate(path string) (at located, ok bool) {
	parts := strings.Split(path, "/")
	for _, p := range parts {
		if p == "" {
			return located{}, false
		}
	}
	for n := min(2, len(parts)-1); n > 0; n-- {
		r := l.places[strings.Join(parts[:n], "/")]
		if r == nil {
			continue
		}
		at := located{resource: r, key: sqlstore.Key{Resource: r.Storage.Key}}
		switch rest := parts[n:]; {
		case r.Namespaced && len(rest) == 2:
			at.key.Namespace, at.key.Name = rest[0], rest[1]
		case !r.Namespaced && len(rest) == 1:
			at.key.Name = rest[0]
		default:
			return located{}, false
		}
		return at, true
	}
	return l.custom(parts)
}

// custom finds the object of a custom resource: GROUP/PLURAL/[NAMESPACE/]NAME. A group of
// a definition has a dot in its name, and built-in resources have none.
func (l *layout) custom(parts []string) (at located, ok bool) {
	if len(parts) < 3 || len(parts) > 4 || !strings.Contains(parts[0], ".") {
		return located{}, false
	}
	at.key.Resource = schema.GroupResource{Group: parts[0], Resource: parts[1]}.String()
	if strings.Contains(parts[1], ".") || l.catalogue.Own(parts[0], parts[1]) {
		return located{}, false // the row would be ambiguous: of another group, or of a built-in kind
	}
	if len(parts) == 4 {
		at.key.Namespace = parts[2]
	}
	at.key.Name = parts[len(parts)-1]
	return at, true
}
