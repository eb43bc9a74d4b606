// Package migrations runs StorageVersionMigrations: it rewrites objects whose stored form is not the present one, and
// changes nothing else of them.
package migrations

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/storagemigration"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/permits"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
	"github.com/rowlock/rowlock/sqlstore"
)

const (
	// Storage is the storage of StorageVersionMigrations.
	Storage = plural + "." + group
	group   = "storagemigration.k8s.io"
	plural  = "storageversionmigrations"
	// Switch is the name of this controller in --controllers, its agent, and the name of its queue.
	Switch = "storage-version-migrator-controller"
)

// forMigrations: a client that may create a StorageVersionMigration makes the server rewrite all objects of a
// resource. This does not change their meaning, and shows none of them to the client.
var forMigrations = permits.OfServer("storage migrations")

// Controller runs StorageVersionMigrations: it stores each object of a resource again whose stored form differs from the
// form in which the server would store it now. It runs one migration at a time and writes one object at a time, and pauses
// as long as it worked, so that other writers have the database to themselves at least half of the time. If it is
// interrupted, its writes remain, and the server that continues skips those objects.
type Controller struct {
	reconcile.Base
	Catalogue *kinds.Catalogue
	Follow    func() // updates Catalogue with all definitions in Cache; nil: not needed
	Objects   Restorer

	loop *reconcile.Loop
}

// Restorer stores the objects of a resource again; objects.Store is one.
type Restorer interface {
	Restore(ctx context.Context, p permits.Permit, r *kinds.Resource, after sqlstore.Key) (objects.Restored, error)
}

const (
	// migrationAwaits bounds how much later than its migration a resource may be created: both may
	// be in one manifest.
	migrationAwaits = time.Minute
	// migrationPasses limits the passes over a resource until a pass writes
	// nothing.
	migrationPasses = 10
	// migrationRests limits the pause between two pages.
	migrationRests = time.Second
	// resyncEvery is the resync period of the migrations.
	resyncEvery = 10 * time.Minute
	// migrationTries is after how long a rest, in Retry, an error is the end of a migration.
	migrationTries = 64
)

// Run works until ctx ends.
func (m *Controller) Run(ctx context.Context) error {
	m.loop = &reconcile.Loop{Base: m.Base, Reconcile: m.reconcile, Resync: resyncEvery, Failure: "a storage migration is interrupted"}
	m.loop.Sources = []reconcile.Source{m.loop.Objects(Storage, nil)}
	return m.loop.Run(ctx)
}

// reconcile does a migration, as it is now.
func (m *Controller) reconcile(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	var migration storagemigrationv1alpha1.StorageVersionMigration
	if !reconcile.Decode(m.Cache.Get(Storage, "", key.Name), &migration) || migration.DeletionTimestamp != nil || finished(&migration) {
		return r, nil
	}
	err = m.migrate(ctx, &migration)
	var failure *migrationFailure
	switch {
	case err == nil || ctx.Err() != nil || errors.Is(err, errMigrationGone):
		return r, nil
	case errors.As(err, &failure):
	default:
		if backoff, _ := m.loop.Queue.Backoff(key); passing(err) || backoff < min(migrationTries*m.loop.Retry, reconcile.LongestBackoff) {
			return r, err
		}
		m.Log.Error("a storage migration has failed", "name", key.Name, "error", err)
		failure = &migrationFailure{"migration encountered unhandled error"}
	}
	if failure.message == notThere && m.Now().Before(migration.CreationTimestamp.Add(migrationAwaits)) {
		return r, reconcile.ErrRetry
	}
	return r, m.setStatus(ctx, &migration, conditionOf(storagemigrationv1alpha1.MigrationFailed, "StorageVersionMigrationFailed", failure.message, m.Now()))
}

// migrationFailure is the end of a migration, in the words of a stock controller.
type migrationFailure struct{ message string }

func (e *migrationFailure) Error() string { return e.message }

const notThere = "resource does not exist in discovery"

// errMigrationGone: the migration was deleted, or is finished.
var errMigrationGone = errors.New("the migration is gone")

func finished(m *storagemigrationv1alpha1.StorageVersionMigration) bool {
	return storagemigration.Is(m, storagemigrationv1alpha1.MigrationSucceeded) || storagemigration.Is(m, storagemigrationv1alpha1.MigrationFailed)
}

// passing reports whether an error is transient: one of the database or of a key server, and not of an
// object.
func passing(err error) bool {
	return slices.ContainsFunc([]error{sqlstore.ErrBusy, sqlstore.ErrUnavailable, sqlstore.ErrUncertain, sqlstore.ErrClosed, sqlstore.ErrKeyUnavailable}, func(e error) bool { return errors.Is(err, e) })
}

// migrate does a migration that is not finished, from the beginning.
func (m *Controller) migrate(ctx context.Context, migration *storagemigrationv1alpha1.StorageVersionMigration) error {
	home, err := m.home(migration)
	if err != nil {
		return err
	}
	if migration.Status.ResourceVersion == "" {
		revision := strconv.FormatInt(m.Cache.Snapshot(home.Storage.Key).Revision, 10)
		if err := m.setStatus(ctx, migration, func(s *storagemigrationv1alpha1.StorageVersionMigrationStatus) { s.ResourceVersion = revision }); err != nil {
			return err
		}
	}
	began := conditionOf(storagemigrationv1alpha1.MigrationRunning, "StorageVersionMigrationInProgress", "", m.Now())
	if err := m.setStatus(ctx, migration, began); err != nil {
		return err
	}
	for range migrationPasses {
		written, err := m.pass(ctx, migration)
		if err != nil {
			return err
		}
		if written == 0 {
			return m.setStatus(ctx, migration, conditionOf(storagemigrationv1alpha1.MigrationSucceeded, "StorageVersionMigrationSucceeded", "", m.Now()))
		}
	}
	return errors.New("objects are still written in an older form, as by a server with another configuration")
}

// home returns the resource to migrate, in its stored version, by the current definitions: by one older than the migration, all
// objects might be in their newest form already.
func (m *Controller) home(migration *storagemigrationv1alpha1.StorageVersionMigration) (*kinds.Resource, error) {
	if m.Follow != nil {
		m.Follow()
	}
	of := migration.Spec.Resource
	r := m.Catalogue.Lookup(of.Group, of.Version, of.Resource)
	if of.Version == "" { // created in v1beta1, which names none
		r = m.served(of.Group, of.Resource)
	}
	switch {
	case r == nil || r.Off:
		return nil, &migrationFailure{notThere}
	case r.Storage == nil:
		return nil, &migrationFailure{"resource not found"}
	}
	home := m.Catalogue.ByStorage(r.Storage.Key)
	if home == nil { // its definition was just deleted
		return nil, &migrationFailure{notThere}
	}
	return home, nil
}

// served returns a resource in the first version of its group that serves it; nil: none does.
func (m *Controller) served(group, plural string) *kinds.Resource {
	for _, version := range m.Catalogue.Versions(group) {
		if r := m.Catalogue.Lookup(group, version, plural); r != nil && !r.Off {
			return r
		}
	}
	return nil
}

// pass goes through the objects of a resource once. It returns how many were not in their newest form.
func (m *Controller) pass(ctx context.Context, migration *storagemigrationv1alpha1.StorageVersionMigration) (written int, err error) {
	var after sqlstore.Key
	for {
		if m.gone(migration) {
			return written, errMigrationGone
		}
		home, err := m.home(migration) // whose stored version may have changed
		if err != nil {
			return written, err
		}
		began := time.Now()
		page, err := m.Objects.Restore(ctx, forMigrations, home, after)
		if err != nil {
			return written, fmt.Errorf("behind %v: %w", after, err)
		}
		written += page.Written + page.Raced
		if !page.More {
			return written, nil
		}
		after = page.Last
		if !sqlstore.Sleep(ctx, min(time.Since(began), migrationRests)) {
			return written, ctx.Err()
		}
	}
}

// gone reports whether a migration was deleted, or finished by another client.
func (m *Controller) gone(migration *storagemigrationv1alpha1.StorageVersionMigration) bool {
	item := m.Cache.Get(Storage, "", migration.Name)
	var now storagemigrationv1alpha1.StorageVersionMigration
	return item == nil || item.Err() == nil && (!reconcile.Decode(item, &now) || now.UID != migration.UID || now.DeletionTimestamp != nil || finished(&now))
}

// setStatus updates the status of a migration, and retries after a conflict. If it succeeds, migration
// is the stored object.
func (m *Controller) setStatus(ctx context.Context, migration *storagemigrationv1alpha1.StorageVersionMigration, change func(*storagemigrationv1alpha1.StorageVersionMigrationStatus)) error {
	for tries := 1; ; tries++ {
		change(&migration.Status)
		var now storagemigrationv1alpha1.StorageVersionMigration
		err := m.call(ctx, http.MethodPut, "/status", migration, &now)
		if apierrors.IsConflict(err) && tries < migrationPasses {
			if err = m.call(ctx, http.MethodGet, "", migration, &now); err == nil {
				if now.UID != migration.UID || finished(&now) {
					return errMigrationGone
				}
				*migration = now
				continue
			}
		}
		switch {
		case apierrors.IsNotFound(err):
			return errMigrationGone
		case err != nil:
			return err
		}
		*migration = now
		return nil
	}
}

// call reads a migration, or writes it, in the version in which the release serves it. into is the answer.
func (m *Controller) call(ctx context.Context, method, subresource string, migration, into *storagemigrationv1alpha1.StorageVersionMigration) error {
	r := m.served(group, plural)
	if r == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: plural}, migration.Name)
	}
	convert := func(by func(kinds.Object) (kinds.Object, error), obj kinds.Object) (kinds.Object, error) {
		if by == nil { // the stored version
			return obj, nil
		}
		return by(obj)
	}
	var body any
	contentType := ""
	if method != http.MethodGet {
		served, err := convert(r.FromStorage, migration)
		if err != nil {
			return err
		}
		body, contentType = served, reconcile.JSON
	}
	answer := r.New()
	path := "/apis/" + group + "/" + r.Version + "/" + plural + "/" + url.PathEscape(migration.Name) + subresource
	if err := m.API.Call(ctx, Switch, method, path, contentType, body, answer); err != nil {
		return err
	}
	stored, err := convert(r.ToStorage, answer)
	if err != nil {
		return err
	}
	*into = *stored.(*storagemigrationv1alpha1.StorageVersionMigration)
	return nil
}

// conditionOf adds a condition that is true to a status that lacks it. A finished migration is no longer
// running.
func conditionOf(t storagemigrationv1alpha1.MigrationConditionType, reason, message string, now time.Time) func(*storagemigrationv1alpha1.StorageVersionMigrationStatus) {
	return func(s *storagemigrationv1alpha1.StorageVersionMigrationStatus) {
		own := storagemigrationv1alpha1.MigrationCondition{
			Type: t, Status: corev1.ConditionTrue, LastUpdateTime: metav1.NewTime(now), Reason: reason, Message: message,
		}
		known := false
		for i := range s.Conditions {
			switch c := &s.Conditions[i]; c.Type {
			case t:
				known = true
				if c.Status != own.Status {
					*c = own
				}
			case storagemigrationv1alpha1.MigrationRunning:
				c.Status = corev1.ConditionFalse
			}
		}
		if !known {
			s.Conditions = append(s.Conditions, own)
		}
	}
}
