package server

import (
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/certificates"
	"github.com/rowlock/rowlock/server/admission/ingress"
	"github.com/rowlock/rowlock/server/admission/limits"
	"github.com/rowlock/rowlock/server/admission/nodes"
	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/admission/storage"
)

// plugins are the admission plugins that are on by default, in their order.
func (s *Server) plugins() []admission.Plugin {
	o := objects{s}
	return []admission.Plugin{
		admission.NamespaceLifecycle{Namespaces: s.Verbs},
		limits.Ranger{Objects: o},
		pods.ServiceAccount{Objects: o},
		nodes.Taints{},
		pods.Priority{Objects: o},
		pods.Tolerations{NotReady: 300, Unreachable: 300},
		storage.DefaultClass{Objects: o},
		storage.Protection{},
		storage.Resize{Objects: o},
		pods.RuntimeClass{Objects: o},
		certificates.Approval{Authorizer: s.cfg.Authorizer},
		certificates.Signing{Authorizer: s.cfg.Authorizer},
		certificates.SubjectRestriction{},
		ingress.DefaultClass{Objects: o},
	}
}
