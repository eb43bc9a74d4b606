package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx/bootstrap"
	"github.com/rowlock/rowlock/server/cache"
)

// BootstrapTokens sees to Secrets of bootstrap tokens: it deletes those whose time is
// over (Clean), and signs the ConfigMap cluster-info of kube-public with the others
// (Sign).
type BootstrapTokens struct {
	API         API
	Cache       *cache.Cache
	Log         *slog.Logger
	Clock       func() time.Time
	Moves       Moves // of the clock
	Clean, Sign bool
	Retry       time.Duration // how soon a failure is tried again; 0: 5 seconds
	Cleaning    *Queue        // of tokens that are over; nil: the work is not measured
	Signing     *Queue        // nil: the work is not measured
}

// Run works until ctx ends.
func (b *BootstrapTokens) Run(ctx context.Context) error {
	if b.Retry == 0 {
		b.Retry = 5 * time.Second
	}
	for ctx.Err() == nil {
		b.follow(ctx)
	}
	return nil
}

// follow works whenever a Secret or cluster-info changes, a token's time is over, or
// something failed. It returns when ctx ends or a watcher was cut off.
func (b *BootstrapTokens) follow(ctx context.Context) {
	secrets, _ := b.Cache.WatchNow("secrets", cache.Scope{Namespace: metav1.NamespaceSystem})
	defer secrets.Stop()
	info, _ := b.Cache.WatchNow("configmaps", cache.Scope{Namespace: metav1.NamespacePublic, Name: clusterInfo})
	defer info.Stop()
	var batch []cache.Delivery
	for {
		moved := b.Moves.next()
		timer := time.NewTimer(b.pass(ctx))
		var err error
		select {
		case <-ctx.Done():
		case <-moved:
		case <-timer.C:
		case <-secrets.Ready():
			batch, _, err = secrets.Take(ctx, batch)
		case <-info.Ready():
			batch, _, err = info.Take(ctx, batch)
		}
		timer.Stop()
		if err != nil || ctx.Err() != nil {
			return
		}
	}
}

// pass looks at all tokens and returns when to look again at the latest.
func (b *BootstrapTokens) pass(ctx context.Context) time.Duration {
	now, next := b.Clock(), time.Hour
	signers := map[string]string{}
	for _, s := range b.tokens() {
		left, ends := bootstrap.Remaining(s.Data, now)
		if ends && left <= 0 {
			if b.Clean {
				b.Cleaning.Add(1)
				if !b.Cleaning.Work(func() bool { return b.delete(ctx, s) }) {
					next = min(next, b.Retry)
				}
			}
			continue
		}
		if ends {
			next = min(next, left)
		}
		if id, secret := string(s.Data[bootstrap.KeyID]), string(s.Data[bootstrap.KeySecret]); string(s.Data[bootstrap.KeySigning]) == "true" &&
			id != "" && secret != "" && s.Name == bootstrap.NamePrefix+id && s.DeletionTimestamp == nil {
			signers[id] = secret
		}
	}
	if b.Sign {
		b.Signing.Add(1)
		signed := b.Signing.Work(func() bool {
			err := b.sign(ctx, signers)
			if err == nil || ctx.Err() != nil {
				return true
			}
			b.Log.Warn("cluster-info cannot be signed", "error", err)
			return false
		})
		if !signed {
			next = min(next, b.Retry)
		}
	}
	return next
}

// tokens are all Secrets of bootstrap tokens.
func (b *BootstrapTokens) tokens() []*corev1.Secret {
	var out []*corev1.Secret
	b.Cache.Snapshot("secrets").Ascend(metav1.NamespaceSystem, "", "", func(item *cache.Item) bool {
		s := &corev1.Secret{}
		if strings.HasPrefix(item.Name, bootstrap.NamePrefix) && item.Corrupt == nil && json.Unmarshal(item.JSON(), s) == nil && s.Type == bootstrap.SecretType {
			out = append(out, s)
		}
		return true
	})
	return out
}

func (b *BootstrapTokens) delete(ctx context.Context, s *corev1.Secret) bool {
	options := &metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}, Preconditions: &metav1.Preconditions{UID: &s.UID},
	}
	err := b.API.Call(ctx, "token-cleaner", http.MethodDelete, "/api/v1/namespaces/"+s.Namespace+"/secrets/"+s.Name, "application/json", options, nil)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true
	}
	if ctx.Err() == nil {
		b.Log.Warn("an expired bootstrap token cannot be deleted", "name", s.Name, "error", err)
	}
	return false
}
