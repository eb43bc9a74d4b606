package storageversions

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/apiserverinternal"
)

const (
	versionsStorage = "storageversions.internal.apiserver.k8s.io"
	versionsPath    = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions"
	resyncEvery     = 10 * time.Minute
)

// Publisher publishes the version in which this server stores each built-in resource, in addition to the entries of other
// servers.
// There is one object for each resource; the publisher checks it every ten minutes and writes it if its own entry differs.
// Collector removes the entries of removed servers.
type Publisher struct {
	reconcile.Base
	Catalogue *kinds.Catalogue
	Host      string // the name of this server's host: servers of one host share an entry
}

// Run works until ctx ends.
func (s *Publisher) Run(ctx context.Context) error {
	l := &reconcile.Loop{Base: s.Base, Keys: []reconcile.Key{{}}, Resync: resyncEvery, Failure: "cannot publish in which versions objects are stored"}
	l.Reconcile = func(ctx context.Context, _ reconcile.Key) (r reconcile.Result, err error) { return r, s.Update(ctx) }
	return l.Run(ctx)
}

// Update publishes unpublished versions. The server needs its Lease first: entries of a server without one
// are removed.
func (s *Publisher) Update(ctx context.Context) error {
	lease := Identity{Base: s.Base, Host: s.Host}
	if err := lease.Renew(ctx, false); err != nil && !reconcile.Superseded(err) {
		return err
	}
	for name, own := range s.own() {
		if err := s.publish(ctx, name, own); err != nil {
			return err
		}
	}
	return nil
}

// own returns the entries of this server, by name of the object.
func (s *Publisher) own() map[string]apiserverinternalv1alpha1.ServerStorageVersion {
	list := map[string]apiserverinternalv1alpha1.ServerStorageVersion{}
	for _, r := range s.Catalogue.All() {
		if r.Storage == nil || !r.HasGoType() || r.Storage.GVK.Group != r.Group {
			continue // the group that stores it has the entry
		}
		group := cmp.Or(r.Group, "core")
		name := group + "." + r.Plural
		v, ok := list[name]
		if !ok {
			v = apiserverinternalv1alpha1.ServerStorageVersion{APIServerID: ServerName(s.Host), EncodingVersion: encoding(r)}
			for _, version := range decodable(r, s.Catalogue) {
				v.DecodableVersions = append(v.DecodableVersions, schema.GroupVersion{Group: r.Group, Version: version}.String())
			}
			for _, other := range s.Catalogue.Known() { // of another group that shares the stored objects
				if other.Storage == r.Storage && other.Group != r.Group {
					v.DecodableVersions = append(v.DecodableVersions, other.APIVersion())
				}
			}
			if !slices.Contains(v.DecodableVersions, v.EncodingVersion) {
				v.DecodableVersions = append(v.DecodableVersions, v.EncodingVersion)
			}
		}
		v.ServedVersions = append(v.ServedVersions, r.APIVersion())
		list[name] = v
	}
	return list
}

func encoding(r *kinds.Resource) string {
	gv := r.Storage.GVK.GroupVersion()
	if r.Storage.HashedVersion != "" {
		gv.Version = r.Storage.HashedVersion
	}
	return gv.String()
}

// decodable returns the versions of a kind that can be read: served ones, ones that could be,
// and ones of the past.
func decodable(r *kinds.Resource, c *kinds.Catalogue) []string {
	versions := c.RetiredVersions(r.Group, r.Kind)
	for _, other := range c.Known() {
		if other.GroupResource() == r.GroupResource() && !slices.Contains(versions, other.Version) {
			versions = append(versions, other.Version)
		}
	}
	slices.SortFunc(versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	if r.Group == "autoscaling" { // whose betas a stock server has the other way round
		if i, j := slices.Index(versions, "v2beta2"), slices.Index(versions, "v2beta1"); i >= 0 && j > i {
			versions[i], versions[j] = versions[j], versions[i]
		}
	}
	return versions
}

// publish sets this server's entry in an object, and retries while other servers write it.
func (s *Publisher) publish(ctx context.Context, name string, own apiserverinternalv1alpha1.ServerStorageVersion) error {
	path := versionsPath + "/" + url.PathEscape(name)
	for {
		var v apiserverinternalv1alpha1.StorageVersion
		err := s.API.Call(ctx, identityServer, http.MethodGet, path, "", nil, &v)
		if apierrors.IsNotFound(err) {
			fresh := &apiserverinternalv1alpha1.StorageVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
			err = s.API.Call(ctx, identityServer, http.MethodPost, versionsPath, reconcile.JSON, fresh, &v)
			if apierrors.IsAlreadyExists(err) {
				continue
			}
		}
		if err != nil {
			return err
		}
		if !s.set(&v, own) {
			return nil
		}
		err = s.API.Call(ctx, identityServer, http.MethodPut, path+"/status", reconcile.JSON, &v, nil)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue
		}
		return err
	}
}

// set puts this server's part into a status, and reports whether that changed it.
func (s *Publisher) set(v *apiserverinternalv1alpha1.StorageVersion, own apiserverinternalv1alpha1.ServerStorageVersion) bool {
	list := v.Status.StorageVersions
	i := slices.IndexFunc(list, func(other apiserverinternalv1alpha1.ServerStorageVersion) bool {
		return other.APIServerID == own.APIServerID
	})
	if i >= 0 && list[i].EncodingVersion == own.EncodingVersion && slices.Equal(list[i].DecodableVersions, own.DecodableVersions) && slices.Equal(list[i].ServedVersions, own.ServedVersions) {
		return false
	}
	if i >= 0 {
		list[i] = own
	} else {
		v.Status.StorageVersions = append(list, own)
	}
	agree(v, s.Now())
	return true
}

// agree sets in a status whether all servers store the same version.
func agree(v *apiserverinternalv1alpha1.StorageVersion, now time.Time) {
	c := apiserverinternalv1alpha1.StorageVersionCondition{
		Type: apiserverinternalv1alpha1.AllEncodingVersionsEqual, Status: apiserverinternalv1alpha1.ConditionTrue,
		ObservedGeneration: v.Generation, Reason: "CommonEncodingVersionSet", Message: "Common encoding version set",
	}
	v.Status.CommonEncodingVersion = apiserverinternal.Common(v.Status.StorageVersions)
	if v.Status.CommonEncodingVersion == nil {
		c.Status, c.Reason, c.Message = apiserverinternalv1alpha1.ConditionFalse, "CommonEncodingVersionUnset", "Common encoding version unset"
	}
	c.LastTransitionTime = metav1.NewTime(now)
	for k := range v.Status.Conditions {
		if was := &v.Status.Conditions[k]; was.Type == c.Type {
			if was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
			*was = c
			return
		}
	}
	v.Status.Conditions = append(v.Status.Conditions, c)
}
