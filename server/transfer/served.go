package transfer

import (
	"slices"

	"github.com/rowlock/rowlock/sqlstore"
)

// Stored finds how objects that another API server serves as a resource are stored here: the
// resource of their rows, and which of the versions that are served they should be asked
// for in: the stored one if it is there, or else another that can be read; "" if none can.
// ok is false where no stored resource of that name is built in.
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
