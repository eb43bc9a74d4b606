package transfer

import (
	"slices"

	"github.com/rowlock/rowlock/sqlstore"
)

// Stored returns how this server stores the objects that another API server serves as a resource: the resource of
// their rows, and the served version in which to request them: the stored one if it is served there, otherwise another
// readable one; "" if there is none. ok is false if no stored resource of that name is built in.
func (l *layout) Stored(group, plural string, served []string) (resource, version string, ok bool) {
	for _, r := range l.catalogue.Known() {
		if r.Group != group || r.Plural != plural || r.Storage == nil {
			continue
		}
		ok, resource = true, r.Storage.Key
		if stored := r.Storage.GVK; stored.Group == group && slices.Contains(served, stored.Version) {
			return resource, stored.Version, true
		}
		if version == "" && slices.Contains(served, r.Version) {
			version = r.Version
		}
	}
	return resource, version, ok
}

// Key returns the key of a stock server for the object of a row. Errors: foreign.KeyError if no key can name it.
func (w *Writer) Key(k sqlstore.Key) (string, error) {
	key, _, err := w.key(k)
	return key, err
}
