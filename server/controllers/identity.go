package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/ratelog"
)

const (
	identityLabel   = "apiserver.kubernetes.io/identity"
	identityServer  = "kube-apiserver"
	identitySeconds = 3600 // for how long a Lease counts that nobody renews
	identityJitter  = 0.04 // by how much a pause between two renewals may be longer
	renewEvery      = 10 * time.Second
)

// Identity keeps the Lease in kube-system by which others know that there is a server on this
// host, and removes those of servers that have been gone for an hour. It is called by the name
// of the host, as that of a stock server is: servers of one host and one database share it,
// and one of them at a time renews it.
//
// What clients can cause: a write in ten seconds where the Lease is changed or deleted, and
// one for each other Lease with the label of servers that has ended, once an hour, on the
// server that comes first.
type Identity struct {
	API     API
	Cache   *cache.Cache
	Log     *slog.Logger
	Clock   func() time.Time
	Moves   Moves         // of the clock
	Host    string        // the name of the host
	Every   time.Duration // between two renewals; 0: 10 seconds
	Collect time.Duration // between two looks at the Leases of others; 0: an hour
	Retry   time.Duration // how soon a failure is tried again; 0: 1 second

	failed ratelog.Line
}

// ServerName is what servers of a host are called, by the rule of stock servers.
func ServerName(host string) string {
	var text []byte
	for _, part := range []string{host, identityServer} {
		text = binary.BigEndian.AppendUint16(text, uint16(len(part)))
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// identity builds the controller where the server says on which host it is.
func identity(h Host, c Config) func(context.Context) error {
	if c.Host == "" {
		return nil
	}
	return (&Identity{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Host: c.Host}).Run
}

// Run works until ctx ends. The Lease stays: a server that comes back goes on with it.
func (l *Identity) Run(ctx context.Context) error {
	if l.Every == 0 {
		l.Every = renewEvery
	}
	if l.Collect == 0 {
		l.Collect = time.Hour
	}
	if l.Retry == 0 {
		l.Retry = time.Second
	}
	var collected time.Time
	retry := l.Retry // each time twice the one before: what the store refuses it may refuse for long
	for first := true; ctx.Err() == nil; {
		rest := l.Every + time.Duration(rand.Float64()*identityJitter*float64(l.Every))
		err := l.Renew(ctx, first)
		if now := l.Clock(); err == nil {
			first = false
			if collected.IsZero() || now.Sub(collected) >= l.Collect {
				collected, err = now, l.collect(ctx)
			}
		}
		if err != nil && ctx.Err() == nil {
			rest = retry
			retry = min(2*retry, max(l.Every, l.Retry))
			if !faster(err) {
				l.failed.Log(ctx, l.Log, slog.LevelWarn, "the lease that names this server cannot be kept", "error", err)
			}
		} else {
			retry = l.Retry
		}
		l.Moves.wait(ctx, l.Clock, rest)
	}
	return nil
}

// Renew makes or renews the Lease. Where another server of the host has just done so it is
// left alone, but on a server that has not written it since its start.
func (l *Identity) Renew(ctx context.Context, first bool) error {
	now := l.Clock()
	name := ServerName(l.Host)
	labels := map[string]string{identityLabel: identityServer}
	if len(validation.IsValidLabelValue(l.Host)) == 0 {
		labels[corev1.LabelHostname] = l.Host
	}
	item := l.Cache.Get(leasesKey, metav1.NamespaceSystem, name)
	if item == nil {
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem, Labels: labels},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       ptr.To(name + "_" + uuid.NewString()),
				LeaseDurationSeconds: ptr.To[int32](identitySeconds), RenewTime: &metav1.MicroTime{Time: now},
			},
		}
		return l.API.Call(ctx, identityServer, http.MethodPost, leasesPath(metav1.NamespaceSystem), "application/json", lease, nil)
	}
	if item.Corrupt != nil {
		return item.Corrupt
	}
	var lease coordinationv1.Lease
	if err := json.Unmarshal(item.JSON(), &lease); err != nil {
		return err
	}
	whole := lease.Labels[identityLabel] == labels[identityLabel] && lease.Labels[corev1.LabelHostname] == labels[corev1.LabelHostname]
	if renewed := lease.Spec.RenewTime; !first && whole && renewed != nil {
		if age := now.Sub(renewed.Time); 0 <= age && age < l.Every*9/10 {
			return nil
		}
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	maps.Copy(lease.Labels, labels)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	return l.API.Call(ctx, identityServer, http.MethodPut, leasesPath(metav1.NamespaceSystem)+"/"+name, "application/json", &lease, nil)
}

// collect removes the Leases of servers that have ended, if nobody writes them meanwhile.
func (l *Identity) collect(ctx context.Context) error {
	now := l.Clock()
	var ended []*cache.Item
	l.Cache.Snapshot(leasesKey).Ascend(metav1.NamespaceSystem, "", "", func(item *cache.Item) bool {
		var stored struct{ Spec coordinationv1.LeaseSpec }
		if isIdentity(item) && json.Unmarshal(item.JSON(), &stored) == nil && leaseEnded(&stored.Spec, now) {
			ended = append(ended, item)
		}
		return ctx.Err() == nil
	})
	var failed error // the last: one that may not go keeps no others
	for _, item := range ended {
		if err := removeSeen(ctx, l.API, identityServer, leasesPath(metav1.NamespaceSystem)+"/"+item.Name, item); err != nil {
			failed = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// isIdentity says whether a Lease of kube-system names a server.
func isIdentity(item *cache.Item) bool {
	return item != nil && item.Corrupt == nil && item.Meta().Labels[identityLabel] == identityServer
}

// leaseEnded says whether nobody has renewed a Lease for as long as it lasts. One that does
// not say so was not written by a server.
func leaseEnded(s *coordinationv1.LeaseSpec, now time.Time) bool {
	if s.RenewTime == nil || s.LeaseDurationSeconds == nil {
		return true
	}
	return s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second).Before(now)
}

// removeSeen deletes an object as it was seen. Somebody who was faster is right.
func removeSeen(ctx context.Context, api API, agent, path string, item *cache.Item) error {
	revision := strconv.FormatInt(item.Revision, 10)
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &revision}}
	if err := api.Call(ctx, agent, http.MethodDelete, path, "application/json", options, nil); err != nil && !faster(err) {
		return err
	}
	return nil
}
