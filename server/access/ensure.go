package access

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/contention"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// Ensure restores the missing parts of the policy: objects, rules, subjects,
// selectors, labels. It keeps additions by other clients, and leaves alone an object whose autoupdate
// annotation is "false" or that it cannot read. Several servers may do so at once. An internal error
// of one object does not keep it from the others.
func (p *Policy) Ensure(ctx context.Context, api API, c *cache.Cache) error {
	var mu sync.Mutex
	var kept error
	var lacking []func(context.Context) error
	for _, s := range p.objects() {
		item := c.Get(s.storage, s.want.GetNamespace(), s.want.GetName())
		if item != nil {
			enough := false
			if item.Err() != nil || cache.Try(func() { enough = p.enough(s, item.JSON()) }) != nil || enough {
				continue
			}
		}
		lacking = append(lacking, func(ctx context.Context) error {
			err := s.ensure(ctx, api, item != nil)
			if err == nil {
				return nil
			}
			err = fmt.Errorf("default policy: %s: %w", s.want.GetName(), err)
			if !apierrors.IsInternalError(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if kept == nil {
				kept = err
			}
			return nil
		})
	}
	if err := InParallel(ctx, policyWriters, lacking); err != nil {
		return err
	}
	return kept
}

// enough reports whether a stored object lacks nothing. It remembers the last object for which that was so:
// the next server of the process often starts with the same bytes, and decoding them takes more time than the
// rest of its start.
func (p *Policy) enough(s policyObject, stored []byte) bool {
	key, sum := s.key(), sha256.Sum256(stored)
	if last, ok := p.whole.Load(key); ok && last == sum {
		return true
	}
	have := s.empty()
	if json.Unmarshal(stored, have) != nil || restore(have, s.want) {
		return false
	}
	p.whole.Store(key, sum)
	return true
}

// ensure creates or restores an object. If the object is not known to exist it does not read it first: on the
// first start none exists.
func (s policyObject) ensure(ctx context.Context, api API, known bool) error {
	if !known {
		err := api.Call(ctx, policyAgent, http.MethodPost, s.collection, jsonType, s.want, nil)
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for try := 1; ; try++ {
		err := s.once(ctx, api)
		switch {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // other servers start as well
		case apierrors.IsNotFound(err) && try < policyTries:
		default:
			return err
		}
		if err := contention.Backoff(ctx, try); err != nil {
			return err
		}
	}
}

func (s policyObject) once(ctx context.Context, api API) error {
	path := s.collection + "/" + s.want.GetName()
	have := s.empty()
	err := api.Call(ctx, policyAgent, http.MethodGet, path, "", nil, have)
	if apierrors.IsNotFound(err) {
		return api.Call(ctx, policyAgent, http.MethodPost, s.collection, jsonType, s.want, nil)
	}
	if err != nil || !restore(have, s.want) {
		return err
	}
	if changesReference(have, s.want) {
		options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(have.GetUID())}}
		if err := api.Call(ctx, policyAgent, http.MethodDelete, path, jsonType, options, nil); err != nil {
			return err
		}
		return api.Call(ctx, policyAgent, http.MethodPost, s.collection, jsonType, s.want, nil)
	}
	return api.Call(ctx, policyAgent, http.MethodPut, path, jsonType, have, nil)
}

// changesReference reports whether a binding refers to another role, which an update cannot change.
func changesReference(have, want kinds.Object) bool {
	switch h := have.(type) {
	case *rbacv1.ClusterRoleBinding:
		return h.RoleRef != want.(*rbacv1.ClusterRoleBinding).RoleRef
	case *rbacv1.RoleBinding:
		return h.RoleRef != want.(*rbacv1.RoleBinding).RoleRef
	}
	return false
}

// restore adds the missing parts of want to have, and reports whether there were any.
func restore(have, want kinds.Object) bool {
	if have.GetAnnotations()[autoUpdate] == autoUpdateNone {
		return false
	}
	changed := changesReference(have, want)
	labels, more := merged(have.GetLabels(), want.GetLabels())
	if more {
		have.SetLabels(labels)
		changed = true
	}
	annotations, more := merged(have.GetAnnotations(), want.GetAnnotations())
	if more {
		have.SetAnnotations(annotations)
		changed = true
	}
	switch h := have.(type) {
	case *rbacv1.ClusterRole:
		w := want.(*rbacv1.ClusterRole)
		changed = restoreSelectors(h, w) || changed
		if w.AggregationRule == nil {
			changed = restoreRules(&h.Rules, w.Rules) || changed
		}
	case *rbacv1.Role:
		changed = restoreRules(&h.Rules, want.(*rbacv1.Role).Rules) || changed
	case *rbacv1.ClusterRoleBinding:
		changed = restoreSubjects(&h.Subjects, want.(*rbacv1.ClusterRoleBinding).Subjects) || changed
	case *rbacv1.RoleBinding:
		changed = restoreSubjects(&h.Subjects, want.(*rbacv1.RoleBinding).Subjects) || changed
	}
	return changed
}

// merged adds the missing keys to have.
func merged(have, want map[string]string) (map[string]string, bool) {
	more := false
	for k, v := range want {
		if _, ok := have[k]; ok {
			continue
		}
		if have == nil {
			have = map[string]string{}
		}
		have[k], more = v, true
	}
	return have, more
}

func restoreRules(have *[]rbacv1.PolicyRule, want []rbacv1.PolicyRule) bool {
	changed := false
	for i := range want {
		if missing, err := rbac.Uncovered(*have, want[i:i+1]); len(missing) > 0 || err != nil {
			*have = append(*have, want[i])
			changed = true
		}
	}
	return changed
}

func restoreSubjects(have *[]rbacv1.Subject, want []rbacv1.Subject) bool {
	changed := false
	had := rules.In(slices.Clone(*have))
	for _, s := range want {
		if !had.Has(s) {
			*have = append(*have, s)
			changed = true
		}
	}
	return changed
}

func restoreSelectors(have, want *rbacv1.ClusterRole) bool {
	if want.AggregationRule == nil {
		return false
	}
	if have.AggregationRule == nil {
		have.AggregationRule = &rbacv1.AggregationRule{}
	}
	changed := false
	for _, s := range want.AggregationRule.ClusterRoleSelectors {
		same := func(other metav1.LabelSelector) bool { return equality.Semantic.DeepEqual(s, other) }
		if !slices.ContainsFunc(have.AggregationRule.ClusterRoleSelectors, same) {
			have.AggregationRule.ClusterRoleSelectors = append(have.AggregationRule.ClusterRoleSelectors, s)
			changed = true
		}
	}
	return changed
}
