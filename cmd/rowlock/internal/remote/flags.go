package remote

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
)

// Dial reads a kubeconfig that flag names, and returns the server's URL and a client that authenticates as the
// user of a context ("": the current one), also by an exec plugin, as kubectl does. An empty file is an error,
// also in a pod, whose own cluster is not meant. The client follows no redirects.
func Dial(flag, kubeconfig, context string) (url string, client *http.Client, err error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	file, err := rules.Load()
	if err != nil {
		return "", nil, flagfile.New(flag, kubeconfig).Wrap(err)
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*file, context, &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return "", nil, flagfile.New(flag, kubeconfig).Wrap(err)
	}
	if !strings.Contains(cfg.Host, "://") { // as kubectl takes it
		cfg.Host = "https://" + cfg.Host
	}
	client, err = rest.HTTPClientFor(cfg)
	if err != nil {
		return "", nil, flagfile.New(flag, kubeconfig).Wrap(err)
	}
	return strings.TrimSuffix(cfg.Host, "/"), WithoutRedirects(client), nil
}

// Flags are the flags of commands that read or write other clusters.
type Flags struct {
	qps   float64
	burst int
	page  int
	wait  time.Duration
}

func (o *Flags) AddTo(f *pflag.FlagSet) {
	f.Float64Var(&o.qps, "qps", 50, "maximum rate of requests to a live cluster, per second")
	f.IntVar(&o.burst, "burst", 100, "maximum burst of requests to a live cluster")
	f.IntVar(&o.page, "page-size", 500, "objects per page of a list")
	f.DurationVar(&o.wait, "max-wait", time.Minute, "maximum wait for a live cluster that sends nothing, or answers with Retry-After")
}

// Client returns a client for the server of a kubeconfig.
func (o *Flags) Client(flag, kubeconfig, context string) (*Client, error) {
	switch {
	case !(o.qps > 0): // also refuses NaN
		return nil, fmt.Errorf("--qps %v: want more than 0", o.qps)
	case o.burst < 1:
		return nil, fmt.Errorf("--burst %d: want 1 or more", o.burst)
	case o.page < 1 || o.page > 10_000:
		return nil, fmt.Errorf("--page-size %d: want 1 to 10000", o.page)
	case o.wait <= 0:
		return nil, fmt.Errorf("--max-wait %s: want more than 0", o.wait)
	}
	url, client, err := Dial(flag, kubeconfig, context)
	if err != nil {
		return nil, err
	}
	c, err := New(Config{URL: url, HTTP: client, QPS: o.qps, Burst: o.burst, Page: o.page, Silence: o.wait, Agent: "rowlock/" + program.Version})
	if err != nil {
		return nil, flagfile.New(flag, kubeconfig).Wrap(err)
	}
	return c, nil
}
