package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	"github.com/rowlock/rowlock/server/admission/services"
	"github.com/rowlock/rowlock/server/admission/storage"
	"github.com/rowlock/rowlock/server/admission/webhook"
)

// plugin is one admission plugin that operators may name.
type plugin struct {
	name string
	on   bool   // without being named
	gate string // the plugin runs only where this feature gate is on; "" is always
	// build makes it, with what the admission configuration file has for it (nil:
	// nothing). It is nil for plugins that this server does not have.
	build func(s *Server, config []byte) (admission.Plugin, error)
}

// plain builds a plugin that cannot fail and takes no configuration.
func plain(build func(s *Server, o admission.Objects) admission.Plugin) func(*Server, []byte) (admission.Plugin, error) {
	return func(s *Server, _ []byte) (admission.Plugin, error) { return build(s, stored{s}), nil }
}

// plugins are all admission plugins of the release, in the order in which they run.
var plugins = []plugin{
	{name: "AlwaysAdmit", build: plain(func(*Server, admission.Objects) admission.Plugin { return admission.AlwaysAdmit{} })},
	{name: "NamespaceAutoProvision", build: plain(func(s *Server, _ admission.Objects) admission.Plugin {
		return admission.NamespaceAutoProvision{Namespaces: s.Verbs, Create: s.createNamespace}
	})},
	{name: "NamespaceLifecycle", on: true, build: plain(func(s *Server, _ admission.Objects) admission.Plugin {
		return admission.NamespaceLifecycle{Namespaces: s.Verbs}
	})},
	{name: "NamespaceExists", build: plain(func(s *Server, _ admission.Objects) admission.Plugin {
		return admission.NamespaceExists{Namespaces: s.Verbs}
	})},
	{name: "LimitPodHardAntiAffinityTopology", build: plain(func(*Server, admission.Objects) admission.Plugin { return pods.HostAntiAffinity{} })},
	{name: "LimitRanger", on: true, build: plain(func(_ *Server, o admission.Objects) admission.Plugin { return limits.Ranger{Objects: o} })},
	{name: "ServiceAccount", on: true, build: plain(func(_ *Server, o admission.Objects) admission.Plugin { return pods.ServiceAccount{Objects: o} })},
	{name: "NodeRestriction", build: plain(func(s *Server, o admission.Objects) admission.Plugin {
		return nodes.Restriction{
			Objects: o, ExpansionRecovery: s.cfg.Feature("RecoverVolumeExpansionFailure"),
			AnySubject: s.cfg.Feature("AllowInsecureKubeletCertificateSigningRequests"),
		}
	})},
	{name: "TaintNodesByCondition", on: true, build: plain(func(*Server, admission.Objects) admission.Plugin { return nodes.Taints{} })},
	{name: "AlwaysPullImages", build: plain(func(*Server, admission.Objects) admission.Plugin { return pods.AlwaysPullImages{} })},
	{name: "ImagePolicyWebhook"},
	{name: "PodSecurity", on: true, build: func(s *Server, config []byte) (admission.Plugin, error) {
		c, err := podsecurity.ParseConfig(config)
		if err != nil {
			return nil, err
		}
		return podsecurity.New(stored{s}, c)
	}},
	{name: "PodNodeSelector", build: func(s *Server, config []byte) (admission.Plugin, error) {
		p, err := pods.ParseNodeSelectors(config)
		p.Objects = stored{s}
		return p, err
	}},
	{name: "Priority", on: true, build: plain(func(_ *Server, o admission.Objects) admission.Plugin { return pods.Priority{Objects: o} })},
	{name: "DefaultTolerationSeconds", on: true, build: plain(func(s *Server, _ admission.Objects) admission.Plugin {
		if t := s.cfg.Admission.Tolerations; t != nil {
			return *t
		}
		return pods.Tolerations{NotReady: 300, Unreachable: 300}
	})},
	{name: "PodTolerationRestriction", build: func(s *Server, config []byte) (admission.Plugin, error) {
		p, err := pods.ParseTolerationLimits(config)
		p.Objects = stored{s}
		return p, err
	}},
	{name: "EventRateLimit", build: func(s *Server, config []byte) (admission.Plugin, error) {
		limits, err := eventrate.ParseLimits(config)
		if err != nil {
			return nil, err
		}
		return eventrate.New(limits, s.cfg.Clock), nil
	}},
	{name: "ExtendedResourceToleration", build: plain(func(*Server, admission.Objects) admission.Plugin { return pods.ExtendedResources{} })},
	{name: "DefaultStorageClass", on: true, build: plain(func(_ *Server, o admission.Objects) admission.Plugin { return storage.DefaultClass{Objects: o} })},
	{name: "StorageObjectInUseProtection", on: true, build: plain(func(*Server, admission.Objects) admission.Plugin { return storage.Protection{} })},
	{name: "OwnerReferencesPermissionEnforcement", build: plain(func(s *Server, _ admission.Objects) admission.Plugin {
		return owners.Permissions{Authorizer: s.cfg.Authorizer, Catalogue: s.cfg.Catalogue}
	})},
	{name: "PersistentVolumeClaimResize", on: true, build: plain(func(_ *Server, o admission.Objects) admission.Plugin { return storage.Resize{Objects: o} })},
	{name: "RuntimeClass", on: true, build: plain(func(_ *Server, o admission.Objects) admission.Plugin { return pods.RuntimeClass{Objects: o} })},
	{name: "CertificateApproval", on: true, build: plain(func(s *Server, _ admission.Objects) admission.Plugin {
		return certificates.Approval{Authorizer: s.cfg.Authorizer}
	})},
	{name: "CertificateSigning", on: true, build: plain(func(s *Server, _ admission.Objects) admission.Plugin {
		return certificates.Signing{Authorizer: s.cfg.Authorizer}
	})},
	{name: "ClusterTrustBundleAttest", on: true},
	{name: "CertificateSubjectRestriction", on: true, build: plain(func(*Server, admission.Objects) admission.Plugin { return certificates.SubjectRestriction{} })},
	{name: "DefaultIngressClass", on: true, build: plain(func(_ *Server, o admission.Objects) admission.Plugin { return ingress.DefaultClass{Objects: o} })},
	{name: "DenyServiceExternalIPs", build: plain(func(*Server, admission.Objects) admission.Plugin { return services.DenyExternalIPs{} })},
	{name: "MutatingAdmissionPolicy", on: true, gate: "MutatingAdmissionPolicy"},
	{name: webhook.MutatingName, on: true, build: func(s *Server, config []byte) (admission.Plugin, error) {
		cfg, err := s.webhookConfig(config)
		return webhook.NewMutating(cfg), err
	}},
	{name: policy.Name, on: true, gate: "ValidatingAdmissionPolicy", build: plain(func(s *Server, _ admission.Objects) admission.Plugin {
		return s.policies()
	})},
	{name: webhook.ValidatingName, on: true, build: func(s *Server, config []byte) (admission.Plugin, error) {
		cfg, err := s.webhookConfig(config)
		return webhook.NewValidating(cfg), err
	}},
	{name: "ResourceQuota", on: true, build: func(s *Server, config []byte) (admission.Plugin, error) {
		limited, err := quota.ParseLimited(config)
		if err != nil {
			return nil, err
		}
		return quota.New(quotas{stored{s}}, limited, s.cfg.Clock), nil
	}},
	{name: "AlwaysDeny", build: plain(func(*Server, admission.Objects) admission.Plugin { return admission.AlwaysDeny{} })},
}

// Admission says which admission plugins run.
type Admission struct {
	// Enable and Disable name plugins that run, or do not, in spite of their default.
	Enable, Disable []string
	// Configs are the parts of the admission configuration file, by plugin.
	Configs map[string][]byte
	// Tolerations are what DefaultTolerationSeconds adds; nil: five minutes each.
	Tolerations *pods.Tolerations
	// DirectServices leads calls of webhooks to endpoints of their Services, and not to
	// the Services' addresses, which may not be reachable from here.
	DirectServices bool
}

// AdmissionNames are the names that Admission knows, sorted; on holds those that
// run without being named, in the order in which they run.
func AdmissionNames() (all, on []string) {
	for _, p := range plugins {
		all = append(all, p.name)
		if p.on && p.build != nil {
			on = append(on, p.name)
		}
	}
	slices.Sort(all)
	return all, on
}

// Validate refuses names that no plugin has, plugins that are switched both ways,
// and a wish for one that this server does not have: whoever asks for a rule must
// not run without it.
func (a *Admission) Validate() error {
	known := func(flag string, names []string) error {
		for _, name := range names {
			if !slices.ContainsFunc(plugins, func(p plugin) bool { return p.name == name }) {
				return fmt.Errorf("%s plugin %q is unknown", flag, name)
			}
		}
		return nil
	}
	if err := known("enable-admission-plugins", a.Enable); err != nil {
		return err
	}
	if err := known("disable-admission-plugins", a.Disable); err != nil {
		return err
	}
	var both []string
	for _, p := range plugins {
		enabled := slices.Contains(a.Enable, p.name)
		if enabled && slices.Contains(a.Disable, p.name) {
			both = append(both, p.name)
		}
		if enabled && p.build == nil {
			return fmt.Errorf("enable-admission-plugins plugin %q is not part of this server", p.name)
		}
	}
	if len(both) > 0 {
		slices.Sort(both)
		return fmt.Errorf("[%s] in enable-admission-plugins and disable-admission-plugins overlapped", strings.Join(both, " "))
	}
	return nil
}

// runs says whether a plugin of this server is to run.
func (a *Admission) runs(p plugin, feature func(string) bool) bool {
	if p.build == nil || p.gate != "" && !feature(p.gate) || slices.Contains(a.Disable, p.name) {
		return false
	}
	return p.on || slices.Contains(a.Enable, p.name)
}

// plugins builds the plugins that run, in their order.
func (s *Server) plugins() ([]admission.Plugin, error) {
	a := &s.cfg.Admission
	var list []admission.Plugin
	for _, p := range plugins {
		if !a.runs(p, s.cfg.Feature) {
			continue
		}
		built, err := p.build(s, a.Configs[p.name])
		if err != nil {
			return nil, fmt.Errorf("admission plugin %s: %w", p.name, err)
		}
		list = append(list, built)
	}
	return list, nil
}

// createNamespace makes a namespace on its own behalf.
func (s *Server) createNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return s.Call(ctx, "kube-apiserver", http.MethodPost, "/api/v1/namespaces", "application/json", ns, nil)
}
