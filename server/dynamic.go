package server

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/admission/webhook"
	"github.com/rowlock/rowlock/server/kinds"
	outward "github.com/rowlock/rowlock/server/webhook"
)

// agent is the User-Agent of calls of webhooks.
const agent = "kube-apiserver-admission"

// dynamic is what the plugins share that follow the cluster's own rules: webhooks and
// policies. Its parts are made when the first of them needs them.
type dynamic struct {
	kin        *criteria.Kin
	conditions *conditions.Metrics
	webhooks   *webhook.Metrics
	resolver   *outward.Resolver
	client     *outward.Client
}

// cluster is what the criteria of webhooks and policies look at.
func (s *Server) cluster() criteria.Cluster {
	if s.dynamic.kin == nil {
		s.dynamic.kin = criteria.NewKin(s.cfg.Catalogue)
	}
	return criteria.Cluster{Namespaces: stored{s}, Kin: s.dynamic.kin}
}

// register adds the metrics of a plugin.
func (s *Server) register(list []prometheus.Collector) {
	if s.Metrics != nil {
		s.Metrics.Registry.MustRegister(list...)
	}
}

func (s *Server) conditionMetrics() *conditions.Metrics {
	if s.dynamic.conditions == nil {
		s.dynamic.conditions = conditions.NewMetrics()
		s.register(s.dynamic.conditions.Collectors())
	}
	return s.dynamic.conditions
}

// policies builds the plugin of policies.
func (s *Server) policies() admission.Plugin {
	metrics := policy.NewMetrics()
	s.register(metrics.Collectors())
	return policy.New(policy.Config{
		Cluster: s.cluster(), Catalogue: s.cfg.Catalogue, Cache: s.Cache, Authorizer: s.cfg.Authorizer,
		Metrics: metrics, Conditions: s.conditionMetrics(),
	})
}

// webhookConfig is what a plugin of webhooks needs. Those with credentials of their
// own have a client of their own.
func (s *Server) webhookConfig(config []byte) (webhook.Config, error) {
	d := &s.dynamic
	if d.webhooks == nil {
		d.webhooks = webhook.NewMetrics()
		s.register(d.webhooks.Collectors())
	}
	cfg := webhook.Config{
		Client: s.webhookClient(), Cluster: s.cluster(), Cache: s.Cache, Authorizer: s.cfg.Authorizer,
		Metrics: d.webhooks, Conditions: s.conditionMetrics(), Log: s.cfg.Log,
	}
	credentials, err := webhook.ParseCredentials(config)
	if credentials != nil {
		cfg.Client = &outward.Client{Resolve: s.dynamic.resolver.Resolve, Credentials: credentials, Agent: agent}
	}
	return cfg, err
}

// webhookClient calls webhooks as nobody.
func (s *Server) webhookClient() *outward.Client {
	d := &s.dynamic
	if d.client == nil {
		d.resolver = &outward.Resolver{Service: s.service, Endpoints: s.endpoints, Slices: s.slices, Direct: s.cfg.Admission.DirectServices}
		d.client = &outward.Client{Resolve: d.resolver.Resolve, Agent: agent}
	}
	return d.client
}

// one finds an object of a built-in kind, nil where there is none.
func one[T kinds.Object](ctx context.Context, s *Server, storage, namespace, name string) (found T, err error) {
	obj, err := stored{s}.Get(ctx, storage, namespace, name)
	if err == nil && obj != nil {
		found, _ = obj.(T)
	}
	return found, err
}

func (s *Server) service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	return one[*corev1.Service](ctx, s, "services", namespace, name)
}

func (s *Server) endpoints(ctx context.Context, namespace, name string) (*corev1.Endpoints, error) {
	return one[*corev1.Endpoints](ctx, s, "endpoints", namespace, name)
}

func (s *Server) slices(ctx context.Context, namespace, name string) ([]*discoveryv1.EndpointSlice, error) {
	all, err := stored{s}.List(ctx, "endpointslices.discovery.k8s.io", namespace)
	if err != nil {
		return nil, err
	}
	var list []*discoveryv1.EndpointSlice
	for _, obj := range all {
		if slice, ok := obj.(*discoveryv1.EndpointSlice); ok && slice.Labels[discoveryv1.LabelServiceName] == name {
			list = append(list, slice)
		}
	}
	return list, nil
}
