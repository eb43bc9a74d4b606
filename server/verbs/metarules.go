package verbs

import (
	genericvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
)

// metaRules say how the rules of a kind look at metadata. A stock server looks once
// itself and lets each kind look again, and clients are shown every finding of either.
type metaRules struct {
	creates         int  // how often its rules of creates check everything, beyond once
	updates, wholes int  // how often a kind's rules of updates check what changed, and everything
	anyFinalizer    bool // finalizers need no qualified name
}

var (
	usualMeta = metaRules{updates: 1}
	wholeMeta = metaRules{updates: 1, wholes: 1}
)

// unusualMeta is by storage key, with the subresource behind it.
var unusualMeta = map[string]metaRules{
	"configmaps": wholeMeta, "secrets": wholeMeta, "pods": wholeMeta, "namespaces": wholeMeta, "serviceaccounts": wholeMeta,
	"replicationcontrollers": wholeMeta, "services": wholeMeta, "endpoints": wholeMeta, "nodes": wholeMeta, "persistentvolumes": wholeMeta,
	"persistentvolumeclaims":              {updates: 1, wholes: 2},
	"controllerrevisions.apps":            wholeMeta,
	"daemonsets.apps":                     wholeMeta,
	"replicasets.apps":                    wholeMeta,
	"jobs.batch":                          wholeMeta,
	"cronjobs.batch/status":               {anyFinalizer: true},
	"csistoragecapacities.storage.k8s.io": {creates: 1, updates: 1, wholes: 1},
	"storageclasses.storage.k8s.io":       wholeMeta, "csinodes.storage.k8s.io": wholeMeta, "volumeattachments.storage.k8s.io": wholeMeta,
	"ingresses.networking.k8s.io": wholeMeta, "ingressclasses.networking.k8s.io": wholeMeta, "networkpolicies.networking.k8s.io": wholeMeta,
	"certificatesigningrequests.certificates.k8s.io":               wholeMeta,
	"certificatesigningrequests.certificates.k8s.io/status":        wholeMeta,
	"certificatesigningrequests.certificates.k8s.io/approval":      wholeMeta,
	"roles.rbac.authorization.k8s.io":                              {updates: 2, wholes: 1},
	"rolebindings.rbac.authorization.k8s.io":                       {updates: 2, wholes: 1},
	"clusterroles.rbac.authorization.k8s.io":                       {updates: 2, wholes: 1},
	"clusterrolebindings.rbac.authorization.k8s.io":                {updates: 2, wholes: 1},
	"runtimeclasses.node.k8s.io":                                   {updates: 1, wholes: 1, anyFinalizer: true},
	"leases.coordination.k8s.io":                                   {updates: 1, anyFinalizer: true},
	"poddisruptionbudgets.policy":                                  {anyFinalizer: true},
	"poddisruptionbudgets.policy/status":                           {anyFinalizer: true},
	"validatingwebhookconfigurations.admissionregistration.k8s.io": {updates: 1, anyFinalizer: true},
	"mutatingwebhookconfigurations.admissionregistration.k8s.io":   {updates: 1, anyFinalizer: true},
	"customresourcedefinitions.apiextensions.k8s.io":               {updates: 1, anyFinalizer: true},
	"customresourcedefinitions.apiextensions.k8s.io/status":        {updates: 1, anyFinalizer: true},
}

func metaRulesOf(c *Call) metaRules {
	key := c.Resource.Storage.Key
	if c.Sub != nil && c.Sub.Update != nil {
		key += "/" + c.Sub.Name
	}
	if r, ok := unusualMeta[key]; ok {
		return r
	}
	return usualMeta
}

// validateMetaCreate checks the metadata of a new object.
func validateMetaCreate(c *Call, s *kinds.Strategy, obj kinds.Object) field.ErrorList {
	errs := genericvalidation.ValidateObjectMetaAccessor(obj, c.Resource.Namespaced, nameRule(s), metadataPath)
	if c.Resource.Custom {
		return errs
	}
	rules := metaRulesOf(c)
	if !rules.anyFinalizer {
		errs = append(errs, finalizerNames(obj)...)
	}
	once := errs
	for range rules.creates {
		errs = append(errs[:len(errs):len(errs)], once...)
	}
	return errs
}

// validateMetaUpdate checks the metadata of an update.
func validateMetaUpdate(c *Call, obj, old kinds.Object) field.ErrorList {
	errs := genericvalidation.ValidateObjectMetaAccessor(obj, c.Resource.Namespaced, segmentName, metadataPath)
	update := genericvalidation.ValidateObjectMetaAccessorUpdate(obj, old, metadataPath)
	errs = append(errs, update...)
	if c.Resource.Custom {
		return append(errs, update...)
	}
	rules := metaRulesOf(c)
	var names field.ErrorList
	if !rules.anyFinalizer {
		names = finalizerNames(obj)
	}
	for range rules.wholes {
		errs = append(errs, genericvalidation.ValidateObjectMetaAccessor(obj, c.Resource.Namespaced, nameRule(&c.Resource.Storage.Strategy), metadataPath)...)
		errs = append(errs, names...)
	}
	for range rules.updates {
		errs = append(append(errs, update...), names...)
	}
	return errs
}

func segmentName(name string, prefix bool) []string {
	if prefix {
		return path.IsValidPathSegmentPrefix(name)
	}
	return path.IsValidPathSegmentName(name)
}
