// Package plugins is the table of admission plugins: their order, their defaults, and how each is made.
package plugins

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/certificates"
	"github.com/rowlock/rowlock/server/admission/eventrate"
	"github.com/rowlock/rowlock/server/admission/ingress"
	"github.com/rowlock/rowlock/server/admission/limits"
	"github.com/rowlock/rowlock/server/admission/nodes"
	"github.com/rowlock/rowlock/server/admission/owners"
	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/admission/podsecurity"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/admission/quota"
	"github.com/rowlock/rowlock/server/admission/scheduling"
	"github.com/rowlock/rowlock/server/admission/services"
	"github.com/rowlock/rowlock/server/admission/storage"
	"github.com/rowlock/rowlock/server/admission/webhook"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
	hooks "github.com/rowlock/rowlock/server/webhook"
)

// API is the server's own API, called in process; server.Server is one.
type API interface {
	Call(ctx context.Context, agent, method, path, contentType string, body, into any) error
}

// Host gives admission plugins access to the server.
type Host struct {
	Catalogue   *kinds.Catalogue
	Cache       *cache.Cache
	Objects     *objects.Store
	Schemas     *schema.Schemas // of all kinds
	API         API
	Authorizer  authx.Authorizer
	RemoteKinds admission.RemoteKinds  // kinds that aggregated servers serve; nil: none
	Webhooks    *hooks.Client          // calls webhooks
	Registry    *prometheus.Registry   // of metrics; nil: they are not shown
	Feature     func(gate string) bool // whether a feature gate is on
	Clock       func() time.Time
	Log         *slog.Logger
}

// Build makes the plugins that run, in their order. The first is that by which reads are
// decided on.
func Build(h Host, c Config) ([]admission.Plugin, error) {
	s := share(h, &c)
	s.tolerations = c.Tolerations
	list := []admission.Plugin{policy.ParamAccess{Authorizer: h.Authorizer, Catalogue: h.Catalogue, RemoteKinds: h.RemoteKinds, Objects: s.reader}}
	for _, p := range all {
		if !c.runs(p.name, h.Feature) {
			continue
		}
		built, err := p.build(s, c.Configs[p.name])
		if err != nil {
			return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
		}
		list = append(list, built)
	}
	return list, nil
}

// createNamespace makes a namespace on the server's own behalf.
func (s *shared) createNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return s.API.Call(ctx, "kube-apiserver", http.MethodPost, "/api/v1/namespaces", "application/json", ns, nil)
}

// entry is one admission plugin that operators may name.
type entry struct {
	name string
	on   bool   // without being named
	gate string // the plugin runs only where this feature gate is on; "" is always
	// later means that release 1.32 has no plugin of the name.
	later bool
	// build makes the plugin with its part of the admission configuration file (nil: none). It is nil for
	// plugins that this server does not have.
	build func(s *shared, config []byte) (admission.Plugin, error)
}

// plain builds a plugin that cannot fail and takes no configuration.
func plain(build func(s *shared) admission.Plugin) func(*shared, []byte) (admission.Plugin, error) {
	return func(s *shared, _ []byte) (admission.Plugin, error) { return build(s), nil }
}

// all are the admission plugins of the release, in the order in which they run.
var all = []entry{
	{name: "AlwaysAdmit", build: plain(func(*shared) admission.Plugin { return admission.AlwaysAdmit{} })},
	{name: "NamespaceAutoProvision", build: plain(func(s *shared) admission.Plugin {
		return admission.NamespaceAutoProvision{Namespaces: s.reader, Create: s.createNamespace}
	})},
	{name: "NamespaceLifecycle", on: true, build: plain(func(s *shared) admission.Plugin {
		return admission.NamespaceLifecycle{Namespaces: s.reader}
	})},
	{name: "NamespaceExists", build: plain(func(s *shared) admission.Plugin {
		return admission.NamespaceExists{Namespaces: s.reader}
	})},
	{name: "LimitPodHardAntiAffinityTopology", build: plain(func(*shared) admission.Plugin { return pods.HostAntiAffinity{} })},
	{name: "LimitRanger", on: true, build: plain(func(s *shared) admission.Plugin {
		return limits.Ranger{Objects: s.reader, PodResources: s.Feature("PodLevelResources")}
	})},
	{name: "ServiceAccount", on: true, build: plain(func(s *shared) admission.Plugin { return pods.ServiceAccount{Objects: s.reader} })},
	{name: "NodeRestriction", build: plain(func(s *shared) admission.Plugin {
		return nodes.Restriction{
			Objects: s.reader, ExpansionRecovery: s.Feature("RecoverVolumeExpansionFailure"),
			AnySubject: s.Feature("AllowInsecureKubeletCertificateSigningRequests"),
			Audiences:  s.Feature("ServiceAccountNodeAudienceRestriction"), Authorizer: s.Authorizer, Release: s.Catalogue.Release(),
			Certificates: s.Feature("PodCertificateRequest"),
		}
	})},
	{name: "TaintNodesByCondition", on: true, build: plain(func(*shared) admission.Plugin { return nodes.Taints{} })},
	{name: "AlwaysPullImages", build: plain(func(*shared) admission.Plugin { return pods.AlwaysPullImages{} })},
	{name: "ImagePolicyWebhook"},
	{name: "PodSecurity", on: true, build: func(s *shared, config []byte) (admission.Plugin, error) {
		c, err := podsecurity.ParseConfig(config)
		if err != nil {
			return nil, err
		}
		m := podsecurity.NewMetrics(s.Catalogue.Release())
		s.register(m.Collectors())
		return podsecurity.New(s.reader, c, s.Catalogue.Release(), s.Feature("UserNamespacesPodSecurityStandards"), m)
	}},
	{name: "PodNodeSelector", build: func(s *shared, config []byte) (admission.Plugin, error) {
		p, err := pods.ParseNodeSelectors(config)
		p.Objects = s.reader
		return p, err
	}},
	{name: "Priority", on: true, build: plain(func(s *shared) admission.Plugin {
		return pods.Priority{Objects: s.reader, Groups: s.Feature("WorkloadAwarePreemption")}
	})},
	{name: "DefaultTolerationSeconds", on: true, build: plain(func(s *shared) admission.Plugin {
		if t := s.tolerations; t != nil {
			return *t
		}
		return pods.Tolerations{NotReady: 300, Unreachable: 300}
	})},
	{name: "PodTolerationRestriction", build: func(s *shared, config []byte) (admission.Plugin, error) {
		p, err := pods.ParseTolerationLimits(config)
		p.Objects, p.PodResources = s.reader, s.Feature("PodLevelResources")
		return p, err
	}},
	{name: "EventRateLimit", build: func(s *shared, config []byte) (admission.Plugin, error) {
		limits, err := eventrate.ParseLimits(config)
		if err != nil {
			return nil, err
		}
		return eventrate.New(limits, s.Clock), nil
	}},
	{name: "ExtendedResourceToleration", build: plain(func(*shared) admission.Plugin { return pods.ExtendedResources{} })},
	{name: "DefaultStorageClass", on: true, build: plain(func(s *shared) admission.Plugin { return storage.DefaultClass(s.reader) })},
	{name: "StorageObjectInUseProtection", on: true, build: plain(func(s *shared) admission.Plugin {
		return storage.Protection(s.Catalogue.Release().Has(release.KindRules133) && s.Feature("VolumeAttributesClass"))
	})},
	{name: "PodGroupProtection", on: true, later: true, gate: "GenericWorkload", build: plain(func(*shared) admission.Plugin { return scheduling.Protection() })},
	{name: "OwnerReferencesPermissionEnforcement", build: plain(func(s *shared) admission.Plugin {
		return owners.Permissions{Authorizer: s.Authorizer, Catalogue: s.Catalogue, RemoteKinds: s.RemoteKinds}
	})},
	{name: "PersistentVolumeClaimResize", on: true, build: plain(func(s *shared) admission.Plugin { return storage.Resize(s.reader) })},
	{name: "RuntimeClass", on: true, build: plain(func(s *shared) admission.Plugin { return pods.RuntimeClass{Objects: s.reader} })},
	{name: "CertificateApproval", on: true, build: plain(func(s *shared) admission.Plugin {
		return certificates.Approval(s.Authorizer)
	})},
	{name: "CertificateSigning", on: true, build: plain(func(s *shared) admission.Plugin {
		return certificates.Signing(s.Authorizer)
	})},
	{name: "ClusterTrustBundleAttest", on: true, gate: "ClusterTrustBundle", build: plain(func(s *shared) admission.Plugin {
		return certificates.Attest(s.Authorizer)
	})},
	{name: "CertificateSubjectRestriction", on: true, build: plain(func(*shared) admission.Plugin { return certificates.SubjectRestriction() })},
	{name: "DefaultIngressClass", on: true, build: plain(func(s *shared) admission.Plugin { return ingress.DefaultClass(s.reader) })},
	{name: "DenyServiceExternalIPs", build: plain(func(*shared) admission.Plugin { return services.DenyExternalIPs{} })},
	{name: "PodTopologyLabels", on: true, later: true, gate: "PodTopologyLabelsAdmission", build: plain(func(s *shared) admission.Plugin {
		return pods.TopologyLabels{Objects: s.reader}
	})},
	{name: "PodGroupWorkloadExists", on: true, later: true, gate: "GenericWorkload", build: plain(func(s *shared) admission.Plugin {
		return scheduling.WorkloadExists(s.reader)
	})},
	{name: "NodeDeclaredFeatureValidator", on: true, later: true, gate: "NodeDeclaredFeatures", build: plain(func(s *shared) admission.Plugin {
		return pods.DeclaredFeatures{Objects: s.reader}
	})},
	{name: "JobValidation", on: true, later: true, gate: "GenericWorkload", build: plain(func(s *shared) admission.Plugin {
		if s.Catalogue.ByStorage("podgroups.scheduling.k8s.io") == nil {
			return scheduling.Jobs(nil)
		}
		return scheduling.Jobs(s.reader)
	})},
	{name: "PodResizeValidator", on: true, later: true, gate: "InPlacePodVerticalScaling", build: plain(func(s *shared) admission.Plugin {
		return pods.Resizes{Objects: s.reader, Off: !s.Catalogue.Release().Has(release.PodRules133)}
	})},
	{name: policy.MutatingName, on: true, gate: "MutatingAdmissionPolicy", build: plain(func(s *shared) admission.Plugin {
		return policy.NewMutating(s.policyConfig())
	})},
	{name: webhook.MutatingName, on: true, build: func(s *shared, config []byte) (admission.Plugin, error) {
		cfg, err := s.webhookConfig(config)
		return webhook.NewMutating(cfg), err
	}},
	{name: policy.Name, on: true, build: plain(func(s *shared) admission.Plugin {
		return policy.New(s.policyConfig())
	})},
	{name: webhook.ValidatingName, on: true, build: func(s *shared, config []byte) (admission.Plugin, error) {
		cfg, err := s.webhookConfig(config)
		return webhook.NewValidating(cfg), err
	}},
	{name: "ResourceQuota", on: true, build: func(s *shared, config []byte) (admission.Plugin, error) {
		limited, err := quota.ParseLimited(config)
		if err != nil {
			return nil, err
		}
		rules := quota.Rules{
			Whole: s.Feature("PodLevelResources"), Resize: s.Feature("InPlacePodVerticalScaling"), Moves: s.Catalogue.Release().Has(release.KindRules133),
		}
		return quota.New(quotas{s.reader, s.API}, limited, rules, s.Clock), nil
	}},
	{name: "AlwaysDeny", build: plain(func(*shared) admission.Plugin { return admission.AlwaysDeny{} })},
}
