package admission

import (
	"context"

	"github.com/rowlock/rowlock/server/kinds"
)

// DefaultClass finds the class that one of the annotations marks as default: of several the newest, and of those of the
// same age the first by name; nil if there is none.
func DefaultClass(ctx context.Context, objects Objects, storage string, annotations ...string) (kinds.Object, error) {
	list, err := objects.List(ctx, storage, "", nil)
	if err != nil {
		return nil, err
	}
	var found kinds.Object
	for _, o := range list { // in order of names
		marked := false
		for _, name := range annotations {
			marked = marked || o.GetAnnotations()[name] == "true"
		}
		if marked && (found == nil || o.GetCreationTimestamp().After(found.GetCreationTimestamp().Time)) {
			found = o
		}
	}
	return found, nil
}
