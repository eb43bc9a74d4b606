package importer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
)

// maxPassword is the largest password file in bytes.
const maxPassword = 4 << 10

// etcdOptions are the flags of a live etcd.
type etcdOptions struct {
	etcd.Config
	passwordFile string
}

func (o *etcdOptions) addTo(f *pflag.FlagSet) {
	f.StringVar(&o.CAFile, "etcd-cafile", "", "authorities of a live etcd's certificates (default: the system's)")
	f.StringVar(&o.CertFile, "etcd-certfile", "", "client certificate for a live etcd")
	f.StringVar(&o.KeyFile, "etcd-keyfile", "", "key of --etcd-certfile")
	f.StringVar(&o.User, "etcd-user", "", "user of a live etcd with password authentication")
	f.StringVar(&o.passwordFile, "etcd-password-file", "", "file with the password of --etcd-user")
}

// openEtcd connects to a live etcd; rest are its endpoints, separated by commas.
func openEtcd(ctx context.Context, rest, _ string, o *importOptions) (foreign.Source, error) {
	c := o.etcd.Config
	c.Endpoints, c.Prefix = strings.Split(rest, ","), "/"+strings.Trim(o.prefix, "/")+"/"
	if (c.User == "") != (o.etcd.passwordFile == "") {
		return nil, errors.New("--etcd-user and --etcd-password-file are given together")
	}
	if c.User != "" {
		info, err := os.Stat(o.etcd.passwordFile)
		if err == nil && (!info.Mode().IsRegular() || info.Size() > maxPassword) {
			err = fmt.Errorf("%s is not a file of at most %d bytes", o.etcd.passwordFile, maxPassword)
		}
		var text []byte
		if err == nil {
			text, err = os.ReadFile(o.etcd.passwordFile)
		}
		if err != nil {
			return nil, fmt.Errorf("--etcd-password-file: %w", err)
		}
		c.Password = strings.TrimRight(string(text), "\r\n")
	}
	return etcd.Open(ctx, c)
}
