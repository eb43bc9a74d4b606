package objects

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/sqlstore"
)

// Find finds an item, or nil. If the cache has none, it waits for every write of all servers and looks again,
// so that nil is certain.
func (s *Store) Find(ctx context.Context, p permits.Permit, at Place) (*cache.Item, error) {
	if item, err := s.Get(p, at); item != nil || err != nil {
		return item, err
	}
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	return s.Get(p, at)
}

// Outdated reports whether the definition of a custom resource has changed, or is gone, since r was made of it, as far as the
// catalogue has followed.
func (s *Store) Outdated(r *kinds.Resource) bool {
	return !r.HasGoType() && s.catalogue != nil && s.catalogue.Lookup(r.Group, r.Version, r.Plural) != r
}

// Namespace finds a namespace, or nil.
func (s *Store) Namespace(ctx context.Context, p permits.Permit, name string) (*cache.Item, error) {
	return s.Find(ctx, p, Place{Resource: s.catalogue.ByStorage("namespaces"), Name: name})
}

// NamespaceExisted reports whether the namespace of an object existed when the object was created, as far as the cache knows, which must
// have the object.
func (s *Store) NamespaceExisted(item *cache.Item) bool {
	if s.cache.Get("namespaces", "", item.Namespace) != nil {
		return true
	}
	_, removed := s.cache.LastChange("namespaces") // after Get: a later delete of the namespace counts
	return removed > item.Created()
}

// Live finds an object and decodes it in its stored version, a custom one in that of the place. Its error is
// 404 for a missing object, and 400 for a name that no object can have.
func (s *Store) Live(ctx context.Context, p permits.Permit, at Place) (kinds.Object, *cache.Item, error) {
	if err := CheckName(at.Name); err != nil {
		return nil, nil, err
	}
	item, err := s.Find(ctx, p, at)
	if err != nil {
		return nil, nil, err
	}
	if item == nil {
		return nil, nil, apierrors.NewNotFound(at.Resource.GroupResource(), at.Name)
	}
	obj, err := s.Decode(ctx, at.Resource, item)
	return obj, item, err
}

// Latest is Live after every write that any server has made so far: for answers that no commit verifies.
func (s *Store) Latest(ctx context.Context, p permits.Permit, at Place) (kinds.Object, error) {
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	obj, _, err := s.Live(ctx, p, at)
	return obj, err
}

// Read finds an item that is at least as new as the resourceVersion of a GET: "" means every earlier write,
// "0" the state of the cache. Its errors are API statuses.
func (s *Store) Read(ctx context.Context, p permits.Permit, at Place, resourceVersion string) (*cache.Item, error) {
	if err := CheckName(at.Name); err != nil {
		return nil, err
	}
	revision, err := parseRevision(resourceVersion)
	switch {
	case err != nil && at.Resource.Storage.Uncached:
		return nil, badVersion(err)
	case err != nil:
		return nil, status.Plain(err.Error())
	case resourceVersion == "":
		err = s.CatchUp(ctx)
	case revision > 0 && at.Resource.Storage.Uncached:
		err = s.reachNow(ctx, revision)
	case revision > 0:
		err = s.Reach(ctx, revision)
	}
	if err != nil {
		return nil, err
	}
	it, err := s.Get(p, at)
	if err != nil {
		return nil, err
	}
	if it == nil {
		return nil, apierrors.NewNotFound(at.Resource.GroupResource(), at.Name)
	}
	return it, nil
}

// CheckVacant fails with sqlstore.ExistsError if the place of a new object is taken. It waits for every write of all servers, so
// that both answers are certain.
func (s *Store) CheckVacant(ctx context.Context, p permits.Permit, at Place) error {
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	there, err := s.Existing(p, at)
	if err == nil && there.Exists {
		err = &sqlstore.ExistsError{Key: at.Key(), Current: sqlstore.Row{Revision: there.Revision}}
	}
	return err
}

// CheckName refuses a name that cannot be part of a path, such as an empty one or one with a slash in a
// reference, before the object is looked up.
func CheckName(name string) error {
	if name == "" {
		return apierrors.NewBadRequest("Name parameter required.")
	}
	if faults := path.IsValidPathSegmentName(name); len(faults) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(faults, ";")))
	}
	return nil
}
