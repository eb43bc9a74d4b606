package importer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/etcd"
	"github.com/rowlock/rowlock/sqlstore/foreign/kine"
)

// sourceKind is a kind of store to import from.
type sourceKind struct {
	prefix string // that its URLs begin with
	form   string // for help and errors
	// open receives the URL without the prefix, and the whole URL.
	open func(ctx context.Context, rest, url string, o *importOptions) (foreign.Source, error)
	// recognise reports whether a file that is named without a prefix is of this kind; nil: no
	// file is.
	recognise func(path string) bool
}

// sourceKinds are all that there are.
var sourceKinds = []sourceKind{
	{prefix: "kine+sqlite:", form: "kine+sqlite:FILE", open: openKine, recognise: kine.IsSQLite},
	{prefix: "kine+postgres:", form: "kine+postgres://USER@HOST/DATABASE", open: openKine},
	{prefix: "kine+postgresql:", form: "kine+postgresql://USER@HOST/DATABASE", open: openKine},
	{prefix: "kine+mysql:", form: "kine+mysql://USER@tcp(HOST:PORT)/DATABASE", open: openKine},
	{prefix: "etcd-snapshot:", form: "etcd-snapshot:FILE", open: openEtcdSnapshot, recognise: isBolt},
	{prefix: "etcd:", form: "etcd:https://HOST:PORT[,...]", open: openEtcd},
}

func openKine(ctx context.Context, rest, url string, _ *importOptions) (foreign.Source, error) {
	if rest == url { // the path of a file, which was recognised
		return kine.OpenSQLite(ctx, url)
	}
	return kine.Open(ctx, strings.TrimPrefix(url, "kine+"))
}

func openEtcdSnapshot(ctx context.Context, rest, _ string, o *importOptions) (foreign.Source, error) {
	s, err := etcd.OpenSnapshot(ctx, strings.TrimPrefix(rest, "//"), o.snapshot)
	if errors.Is(err, etcd.ErrNoHash) {
		return nil, fmt.Errorf("%w; --%s reads it all the same", err, unhashedFlag)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// isBolt looks for the magic number in the first page of a bbolt file.
func isBolt(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	mark := make([]byte, 4)
	_, err = f.ReadAt(mark, 16)
	return err == nil && string(mark) == "\xed\xda\x0c\xed"
}

// openSource opens the source that a URL or the path of a file names, or the live cluster.
func (o *importOptions) openSource(ctx context.Context, name string) (foreign.Source, error) {
	if o.live.kubeconfig != "" {
		return o.openCluster(ctx)
	}
	var forms []string
	for _, k := range sourceKinds {
		if rest, ok := strings.CutPrefix(name, k.prefix); ok {
			return k.open(ctx, rest, name, o)
		}
		forms = append(forms, k.form)
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.Mode().IsRegular():
		for _, k := range sourceKinds {
			if k.recognise != nil && k.recognise(name) {
				return k.open(ctx, name, name, o)
			}
		}
		return nil, fmt.Errorf("%s is neither a SQLite database nor a snapshot of etcd", name)
	case err == nil:
		return nil, fmt.Errorf("%s is not a file: k3s keeps its database in server/db/state.db", name)
	case strings.Contains(name, "@") || strings.Contains(name, "://"): // it may hold a password
		return nil, fmt.Errorf("SOURCE is of an unknown kind: want %s, or the path of a file", strings.Join(forms, ", "))
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s is neither a file nor the URL of a source (%s)", name, strings.Join(forms, ", "))
	}
	return nil, err
}
