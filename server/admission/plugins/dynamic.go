package plugins

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/admission/webhook"
	hooks "github.com/rowlock/rowlock/server/webhook"
)

// shared is the state that the plugins with webhooks and policies share.
type shared struct {
	Host
	reader     Reader
	cluster    criteria.Cluster // state of the cluster for their criteria
	conditions *conditions.Metrics
	webhooks   *webhook.Metrics
	policies   *policy.Metrics

	tolerations *pods.Tolerations
}

// share creates it, and registers its metrics if one of these plugins runs.
func share(h Host, c *Config) *shared {
	r := Reader{h.Catalogue, h.Cache, h.Objects}
	s := &shared{
		Host: h, reader: r, cluster: criteria.Cluster{Namespaces: r, Equivalents: criteria.NewEquivalents(h.Catalogue)},
		conditions: conditions.NewMetrics(), webhooks: webhook.NewMetrics(), policies: policy.NewMetrics(),
	}
	hooks, policies := c.runs(webhook.MutatingName, h.Feature) || c.runs(webhook.ValidatingName, h.Feature), c.runs(policy.Name, h.Feature)
	if hooks || policies || c.runs(policy.MutatingName, h.Feature) {
		s.register(s.conditions.Collectors())
	}
	if hooks {
		s.register(s.webhooks.Collectors())
	}
	if policies {
		s.register(s.policies.Collectors())
	}
	return s
}

// register registers metrics of plugins, if the server has metrics.
func (s *shared) register(metrics []prometheus.Collector) {
	if s.Registry != nil {
		s.Registry.MustRegister(metrics...)
	}
}

// policyConfig returns the configuration of the policy plugins.
func (s *shared) policyConfig() policy.Config {
	return policy.Config{
		Cluster: s.cluster, Catalogue: s.Catalogue, Schemas: s.Schemas, Cache: s.Cache, Objects: s.Objects, Authorizer: s.Authorizer,
		Metrics: s.policies, Conditions: s.conditions, Largest: int(s.Objects.Sizes().Body()),
	}
}

// webhookConfig returns the configuration of a webhook plugin. A plugin with its own credentials has its own client.
func (s *shared) webhookConfig(config []byte) (webhook.Config, error) {
	cfg := webhook.Config{
		Client: s.Webhooks, Cluster: s.cluster, Cache: s.Cache, Authorizer: s.Authorizer,
		Metrics: s.webhooks, Conditions: s.conditions, Log: s.Log,
	}
	credentials, err := webhook.ParseCredentials(config)
	if credentials != nil {
		w := s.Webhooks
		cfg.Client = &hooks.Client{Resolve: w.Resolve, Credentials: credentials, Agent: w.Agent, Dial: w.Dial, DialURL: w.DialURL, Trace: w.Trace, ObsoleteCertificates: w.ObsoleteCertificates}
	}
	return cfg, err
}
