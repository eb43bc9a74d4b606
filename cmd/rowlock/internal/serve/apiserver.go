package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/cli"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/etcd"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/program"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/serve/compat"
	"github.com/rowlock/rowlock/server/datadir"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/sqlstore/etcdstub"
)

// deletesApart is the time that an etcd takes between the two writes by which a Pod without a grace period is
// deleted. Controllers under test look at such Pods in their caches in between.
const deletesApart = 2 * time.Millisecond

// envControllers is the variable that turns controllers on in environments that cannot add a flag.
const envControllers = "ROWLOCK_ENVTEST_CONTROLLERS"

// apiserverOptions are the flags of kube-apiserver that have a meaning only if the binary has that name: the
// database is that of the etcd that comes with rowlock.
type apiserverOptions struct {
	servers []string
	files   etcdstub.TLS
	certDir string
	version string
}

// APIServerCommand is serve with the command line of kube-apiserver: without subcommands, with its defaults where
// they differ, and without controllers, which another program runs.
func APIServerCommand() *cobra.Command {
	o, own := &options{}, &apiserverOptions{}
	cmd := newCommand(o)
	cmd.Use, cmd.Short = program.APIServer, "Run the API server, by the command line of kube-apiserver"
	cmd.Long = `Run the API server until SIGINT or SIGTERM.

It keeps its objects where the etcd that comes with rowlock says, whose address
--etcd-servers gives. No controllers run unless --controllers, or the variable
` + envControllers + `, names them.`
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.CompletionOptions.DisableDefaultCmd = true
	etcd := etcd.Command() // for the etcd of an archive: a script that runs this command
	etcd.Hidden = true
	cmd.AddCommand(etcd, GatesTopic())
	f := cmd.Flags()
	own.addTo(f)
	o.controllers.list = nil
	o.olderGates = true // test suites are written for several releases
	o.deletesApart = deletesApart
	f.Lookup("controllers").DefValue = "[]"
	for flag, value := range map[string]string{
		"allow-privileged": "false", "enable-bootstrap-token-auth": "false", "service-cluster-ip-range": "10.0.0.0/24",
	} {
		_ = f.Lookup(flag).Value.Set(value) // a literal of its type
		f.Lookup(flag).DefValue = value
	}
	f.Lookup("data-dir").DefValue = "" // it is with the etcd's data
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if shown, err := own.showVersion(cmd.OutOrStdout()); shown || err != nil {
			return err
		}
		if list := os.Getenv(envControllers); list != "" && !f.Changed("controllers") {
			o.controllers.list = strings.Split(list, ",")
		}
		o.prepare = func(ctx context.Context, n *network, log *slog.Logger) error { return own.prepare(ctx, o, n, log) }
		return run(cmd, args)
	}
	return cmd
}

// addTo replaces flags that have no effect on serve.
func (own *apiserverOptions) addTo(f *pflag.FlagSet) {
	mine := pflag.NewFlagSet(program.APIServer, pflag.ContinueOnError)
	mine.StringSliceVar(&own.servers, "etcd-servers", nil, "URLs of the etcd that comes with rowlock, which names the database")
	mine.StringVar(&own.files.CAFile, "etcd-cafile", "", "authorities of its certificate")
	mine.StringVar(&own.files.CertFile, "etcd-certfile", "", "certificate to show it")
	mine.StringVar(&own.files.KeyFile, "etcd-keyfile", "", "key of --etcd-certfile")
	mine.StringVar(&own.certDir, "cert-dir", "", "folder of the serving certificate apiserver.crt and its key apiserver.key, which are made if they are missing, unless --tls-cert-file is given (default: that of the keys)")
	mine.VisitAll(func(flag *pflag.Flag) { *f.Lookup(flag.Name) = *flag })
	f.StringVar(&own.version, "version", "false", "print the version, or with =raw all its fields")
	f.Lookup("version").NoOptDefVal = "true"
}

// showVersion prints the version if the flags ask for it, as kube-apiserver does.
func (own *apiserverOptions) showVersion(out io.Writer) (shown bool, err error) {
	chosen := release.Defaults()
	info := chosen.Info(program.Build())
	switch own.version {
	case "false":
		return false, nil
	case "true":
		_, err = fmt.Fprintf(out, "Kubernetes %s\n", info.GitVersion)
	case "raw":
		_, err = fmt.Fprintln(out, rawVersion(chosen.Version, info))
	default:
		return false, fmt.Errorf("invalid argument %q for \"--version\" flag: want true, false or raw", own.version)
	}
	return true, err
}

// rawVersion is info in Go's syntax, with the fields that the type has in release v.
func rawVersion(v release.Version, info version.Info) string {
	value := reflect.ValueOf(info)
	lacks := release.TypeOf(value.Type(), v).Lacks(v)
	var fields []string
	for field, part := range value.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); !slices.Contains(lacks, name) {
			fields = append(fields, fmt.Sprintf("%s:%#v", field.Name, part))
		}
	}
	return fmt.Sprintf("%T{%s}", info, strings.Join(fields, ", "))
}

// prepare finds the database and the folder of keys, and makes the serving certificate.
func (own *apiserverOptions) prepare(ctx context.Context, o *options, n *network, log *slog.Logger) error {
	switch {
	case o.store != "" && len(own.servers) > 0:
		log.Warn("a flag has no effect", "flag", "--etcd-servers", "reason", compat.NoEtcd)
	case o.store == "":
		if len(own.servers) == 0 {
			return errors.New("--etcd-servers must be specified: the address of the etcd that comes with rowlock; or --store, a database")
		}
		place, err := etcdstub.Find(ctx, own.servers, own.files)
		if errors.Is(err, etcdstub.ErrStranger) {
			return fmt.Errorf("--etcd-servers: %w: objects are kept in a SQL database. Start the program `etcd` that `rowlock envtest setup` lays out, or `rowlock etcd`; or give --store", err)
		}
		if err != nil {
			return fmt.Errorf("--etcd-servers: %w", err)
		}
		o.store, o.database.Unsynced, o.ephemeral = "sqlite:"+place.Database, place.Unsynced, place.Unsynced
		if !o.flags.Changed("data-dir") {
			o.dataDir = place.Keys
		}
	}
	if o.onDisk() && (o.dataDir == "" || o.dataDir == program.DefaultDataDir && !o.flags.Changed("data-dir")) {
		return errors.New("--data-dir must be specified together with --store: a folder for keys and certificates")
	}
	if own.certDir == "" || o.serving.Cert != "" || o.serving.Key != "" {
		return nil
	}
	o.serving.Cert, o.serving.Key = filepath.Join(own.certDir, "apiserver.crt"), filepath.Join(own.certDir, "apiserver.key")
	names, ips := cli.SplitHosts(o.serving.Names)
	err := datadir.Serving(o.serving.Cert, o.serving.Key, datadir.Options{
		Hosts: names, IPs: append(ips, n.advertise, n.serviceIP, net.ParseIP(o.bindAddress)), Now: time.Now(), Quick: o.ephemeral,
	})
	if err != nil {
		return fmt.Errorf("--cert-dir: %w", err)
	}
	return nil
}
