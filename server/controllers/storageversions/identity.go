// Package storageversions publishes the servers that share a database: each maintains an identity Lease, and the
// versions in which it stores objects.
package storageversions

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	identityLabel   = "apiserver.kubernetes.io/identity"
	identityServer  = "kube-apiserver" // the value of the label, and the agent of writes about a server
	identitySeconds = 3600             // how long a Lease is valid without a renewal
	identityJitter  = 0.04             // by how much a pause between two renewals may be longer
	renewEvery      = 10 * time.Second
	collectEvery    = time.Hour // the interval of checks of other servers' Leases
)

// The keys of Identity.
var (
	renewal    = reconcile.Key{Name: "renewal"}
	collection = reconcile.Key{Name: "collection"}
)

// Identity maintains this server's identity Lease in kube-system, and deletes those that expired an hour ago. Its name is
// derived from the host's, like that of a stock server: servers of one host and one database share it, and one of them
// at a time renews it.
//
// What clients can cause: a write in ten seconds if they change or delete the Lease, and once an hour a deletion of each
// other expired Lease with the label of servers, by the first server to check.
type Identity struct {
	reconcile.Base
	Host string // the name of the host
}

// ServerName returns the name of servers of a host, as in stock servers.
func ServerName(host string) string {
	var text []byte
	for _, part := range []string{host, identityServer} {
		text = binary.BigEndian.AppendUint16(text, uint16(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// Run works until ctx ends. The Lease remains: a server that restarts renews it again.
func (l *Identity) Run(ctx context.Context) error {
	first := true
	loop := &reconcile.Loop{
		Base: l.Base, Keys: []reconcile.Key{renewal, collection}, Longest: renewEvery, // the store may fail for long
		Failure: "cannot keep the Lease that names this server",
	}
	loop.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		switch key {
		case collection:
			l.Cache.Snapshot(reconcile.LeaseStorage).Ascend(metav1.NamespaceSystem, "", "", func(item *cache.Item) bool {
				if l.ended(item) {
					loop.Queue.AddAfter(reconcile.KeyOf(item), 0)
				}
				return ctx.Err() == nil
			})
			return reconcile.Result{After: collectEvery}, nil
		case renewal:
			err = l.Renew(ctx, first)
			if reconcile.Superseded(err) {
				return reconcile.Result{After: loop.Retry}, nil
			}
			first = first && err != nil
			return reconcile.Result{After: renewEvery + time.Duration(rand.Float64()*identityJitter*float64(renewEvery))}, err
		}
		if item := l.Cache.Get(reconcile.LeaseStorage, key.Namespace, key.Name); l.ended(item) { // Delete fails if another client changes it first
			err = l.Delete(ctx, identityServer, reconcile.LeasesPath(key.Namespace)+"/"+url.PathEscape(key.Name), item)
		}
		return r, err
	}
	return loop.Run(ctx)
}

// Renew makes or renews the Lease. Where another server of the host has just done so it is
// left alone, but on a server that has not written it since its start.
func (l *Identity) Renew(ctx context.Context, first bool) error {
	now := l.Now()
	name := ServerName(l.Host)
	labels := map[string]string{identityLabel: identityServer}
	if len(validation.IsValidLabelValue(l.Host)) == 0 {
		labels[corev1.LabelHostname] = l.Host
	}
	item := l.Cache.Get(reconcile.LeaseStorage, metav1.NamespaceSystem, name)
	if item == nil {
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, Labels: labels},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       ptr.To(name + "_" + uuid.NewString()),
				LeaseDurationSeconds: ptr.To[int32](identitySeconds), RenewTime: &metav1.MicroTime{Time: now},
			},
		}
		return l.API.Call(ctx, identityServer, http.MethodPost, reconcile.LeasesPath(metav1.NamespaceSystem), reconcile.JSON, lease, nil)
	}
	if item.Err() != nil {
		return item.Err()
	}
	var lease coordinationv1.Lease
	if err := json.Unmarshal(item.JSON(), &lease); err != nil {
		return err
	}
	whole := lease.Labels[identityLabel] == labels[identityLabel] && lease.Labels[corev1.LabelHostname] == labels[corev1.LabelHostname]
	if renewed := lease.Spec.RenewTime; !first && whole && renewed != nil {
		if age := now.Sub(renewed.Time); 0 <= age && age < renewEvery*9/10 {
			return nil
		}
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	maps.Copy(lease.Labels, labels)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	return l.API.Call(ctx, identityServer, http.MethodPut, reconcile.LeasesPath(metav1.NamespaceSystem)+"/"+name, reconcile.JSON, &lease, nil)
}

// isIdentity reports whether a Lease of kube-system names a server.
func isIdentity(item *cache.Item) bool {
	return item != nil && item.Err() == nil && item.Meta().Labels[identityLabel] == identityServer
}

// ended reports whether an object is the Lease of a server that has not renewed it for as long as it lasts.
func (l *Identity) ended(item *cache.Item) bool {
	var lease coordinationv1.Lease
	return isIdentity(item) && reconcile.Decode(item, &lease) && reconcile.Expired(&lease.Spec, l.Now())
}
