package main

import (
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/datadir"
)

// controllerNames are the controllers that --controllers switches, by all their
// names; those that only run where they are named are in namedOnly.
var controllerNames = map[string]string{
	"certificatesigningrequest-signing-controller": "csrsigning", "certificatesigningrequest-approving-controller": "csrapproving",
	"token-cleaner-controller": "tokencleaner", "bootstrap-signer-controller": "bootstrapsigner",
	"clusterrole-aggregation-controller": "clusterrole-aggregation", "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
}

var namedOnly = []string{"tokencleaner", "bootstrapsigner", "clusterrole-aggregation", "root-ca-cert-publisher"}

// controllerSet is what --controllers asks for.
type controllerSet struct{ on, off map[string]bool }

// parseControllers reads "*", "name" and "-name".
func parseControllers(list []string) (*controllerSet, error) {
	s := &controllerSet{on: map[string]bool{}, off: map[string]bool{}}
	var known []string
	for _, short := range controllerNames {
		known = append(known, short)
	}
	for _, text := range list {
		name, off := strings.CutPrefix(strings.TrimSpace(text), "-")
		if short, ok := controllerNames[name]; ok {
			name = short
		}
		if name != "*" && !slices.Contains(known, name) {
			return nil, fmt.Errorf("--controllers: %q is not in the list of known controllers", text)
		}
		if off {
			s.off[name] = true
		} else {
			s.on[name] = true
		}
	}
	return s, nil
}

// runs says whether a controller is to run.
func (s *controllerSet) runs(name string) bool {
	switch {
	case s.off[name]:
		return false
	case s.on[name]:
		return true
	}
	return s.on["*"] && !slices.Contains(namedOnly, name)
}

// certificates is the controller that approves and signs, nil where it may do
// neither.
func (s *controllerSet) certificates(dir *datadir.Dir) func(*server.Server) server.Loop {
	sign, approve := s.runs("csrsigning"), s.runs("csrapproving")
	if !sign && !approve {
		return nil
	}
	return func(srv *server.Server) server.Loop {
		cfg := srv.Config()
		c := &controllers.Certificates{API: srv, Cache: srv.Cache, Authorizer: cfg.Authorizer, Log: cfg.Log, Clock: cfg.Clock, Approve: approve, Queue: srv.Queues.Of("certificate")}
		if sign {
			c.Sign = func(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration) ([]byte, error) {
				return dir.Sign(r, usages, life, cfg.Clock())
			}
		}
		return c.Run
	}
}

// bootstrapTokens is the controller of bootstrap tokens, nil where it has nothing to do.
func (s *controllerSet) bootstrapTokens() func(*server.Server) server.Loop {
	clean, sign := s.runs("tokencleaner"), s.runs("bootstrapsigner")
	if !clean && !sign {
		return nil
	}
	return func(srv *server.Server) server.Loop {
		cfg := srv.Config()
		b := &controllers.BootstrapTokens{API: srv, Cache: srv.Cache, Log: cfg.Log, Clock: cfg.Clock, Clean: clean, Sign: sign}
		if clean {
			b.Cleaning = srv.Queues.Of("token_cleaner")
		}
		if sign {
			b.Signing = srv.Queues.Of("bootstrap_signer_queue")
		}
		return b.Run
	}
}

// aggregation is the controller of aggregated cluster roles, nil where it does not run.
func (s *controllerSet) aggregation() func(*server.Server) server.Loop {
	if !s.runs("clusterrole-aggregation") {
		return nil
	}
	return func(srv *server.Server) server.Loop {
		a := &controllers.Aggregation{API: srv, Cache: srv.Cache, Log: srv.Config().Log, Queue: srv.Queues.Of("ClusterRoleAggregator")}
		return a.Run
	}
}

// rootCA is the controller that tells each namespace the authority in a file, nil
// where it does not run.
func (s *controllerSet) rootCA(file string) func(*server.Server) server.Loop {
	if !s.runs("root-ca-cert-publisher") {
		return nil
	}
	return func(srv *server.Server) server.Loop {
		r := &controllers.RootCA{API: srv, Cache: srv.Cache, Log: srv.Config().Log, PEM: func() ([]byte, error) { return os.ReadFile(file) }, Queue: srv.Queues.Of("root_ca_cert_publisher")}
		return r.Run
	}
}

// addTo adds the loops of the controllers that run.
func (s *controllerSet) addTo(cfg *server.Config, dir *datadir.Dir, authority string) {
	for name, loop := range map[string]func(*server.Server) server.Loop{
		"bootstraptokens": s.bootstrapTokens(), "certificates": s.certificates(dir),
		"aggregation": s.aggregation(), "rootca": s.rootCA(authority),
	} {
		if loop != nil {
			lead(cfg, name, loop)
		}
	}
}

// lead adds a loop that runs on one server at a time.
func lead(cfg *server.Config, name string, loop func(*server.Server) server.Loop) {
	if cfg.Leading == nil {
		cfg.Leading = map[string]func(*server.Server) server.Loop{}
	}
	cfg.Leading[name] = loop
}
