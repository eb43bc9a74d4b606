package server

import (
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/certificates"
	"github.com/rowlock/rowlock/server/admission/pods"
)

// plugins are the admission plugins that are on by default, in their order.
func (s *Server) plugins() []admission.Plugin {
	o := objects{s}
	return []admission.Plugin{
		admission.NamespaceLifecycle{Namespaces: s.Verbs},
		pods.ServiceAccount{Objects: o},
		pods.Priority{Objects: o},
		pods.Tolerations{NotReady: 300, Unreachable: 300},
		certificates.Approval{Authorizer: s.cfg.Authorizer},
		certificates.Signing{Authorizer: s.cfg.Authorizer},
		certificates.SubjectRestriction{},
	}
}
