package serve

import (
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/usage"
	"github.com/rowlock/rowlock/server/admission/plugins"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/controllers/garbage"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/datadir"
)

// controllerOptions are the flags of controllers.
type controllerOptions struct {
	list  []string
	lease string // of a kube-controller-manager
	syncs int    // of the garbage collector, at once
	ended int    // how many pods that have ended podgc keeps
	quota time.Duration
	// namespaces limits the namespaces that are emptied concurrently.
	namespaces int32
}

const standBackFlag = "controllers-stand-back-for"

func (o *controllerOptions) addTo(f *pflag.FlagSet) {
	on, named := controllers.Switches()
	f.StringSliceVar(&o.list, "controllers", []string{"*"}, "built-in controllers to run: \"*\" is all that are on by default ("+strings.Join(on, ", ")+
		"), \"name\" adds one ("+strings.Join(named, ", ")+"), \"-name\" leaves one out")
	f.IntVar(&o.ended, "terminated-pod-gc-threshold", 12500, "how many ended pods the controller podgc keeps, the newest; 0 or less: all")
	f.DurationVar(&o.quota, "resource-quota-sync-period", 5*time.Minute, "how often the controller resourcequota recounts all quotas; 0: only after changes")
	f.StringVar(&o.lease, standBackFlag, reconcile.DefaultManagerLease,
		"these controllers do nothing while this Lease, namespace/name, is renewed: by a kube-controller-manager; empty: they always work")
	f.IntVar(&o.syncs, "concurrent-gc-syncs", garbage.Workers, "how many objects the garbage collector processes at once")
	f.Int32Var(&o.namespaces, "concurrent-namespace-syncs", 10, "how many namespaces are emptied at once")
}

// unknownError adds the valid names, and the most similar one, to an error of Select.
func (o *controllerOptions) unknownError(err error) error {
	byDefault, named := controllers.Switches()
	valid := slices.Concat(byDefault, named)
	hint := ""
	for _, text := range o.list {
		if _, wrong := controllers.Select([]string{text}); wrong != nil {
			hint = usage.DidYouMean(strings.TrimLeft(text, " -"), valid)
			break
		}
	}
	return fmt.Errorf("--controllers: %w%s; want *, %s, or one of these with - before it", err, hint, strings.Join(valid, ", "))
}

// build returns what the flags configure; authority is the CA file to publish in each namespace. Without the admission
// plugin ServiceAccount, namespaces get no default service account.
func (o *controllerOptions) build(dir *datadir.Dir, authority string, admitted plugins.Config) (controllers.Config, error) {
	s, err := controllers.Select(o.list)
	if err != nil {
		return controllers.Config{}, o.unknownError(err)
	}
	if slices.Contains(admitted.Disable, "ServiceAccount") {
		s = s.Without("serviceaccount")
	}
	namespace, name, _ := strings.Cut(o.lease, "/")
	if o.lease != "" && (len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0) {
		return controllers.Config{}, fmt.Errorf("--%s: %q is not the namespace and the name of a Lease", standBackFlag, o.lease)
	}
	if o.syncs < 1 {
		return controllers.Config{}, fmt.Errorf("--concurrent-gc-syncs: %d is less than 1", o.syncs)
	}
	every := o.quota
	if every <= 0 {
		every = -1
	}
	if o.namespaces < 1 {
		return controllers.Config{}, fmt.Errorf("--concurrent-namespace-syncs must be greater than 0, but was %d", o.namespaces)
	}
	return controllers.Config{
		NamespaceWorkers: int(o.namespaces), GarbageWorkers: o.syncs, TerminatedPods: o.ended, QuotaInterval: every,
		Runs: s.Runs, Named: s.Named, ManagerLease: o.lease, NeverStandby: o.lease == "",
		Sign: func(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration) ([]byte, error) {
			return dir.Sign(r, usages, life, time.Now())
		},
		Authority: func() ([]byte, error) { return os.ReadFile(authority) },
	}, nil
}
