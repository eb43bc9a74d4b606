package million

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
)

// ErrOther reports that a file holds another cluster than the requested one.
var ErrOther = errors.New("it holds another cluster")

// kind is one kind of objects of the cluster.
type kind struct {
	resource string
	count    int
	make     func(i int) metav1.Object
}

func (s Shape) kinds() []kind {
	return []kind{
		{"namespaces", s.Namespaces(), func(i int) metav1.Object { return s.namespace(i) }},
		{"serviceaccounts", s.Namespaces(), func(i int) metav1.Object { return s.account(i) }},
		{"nodes", s.Nodes(), func(i int) metav1.Object { return s.node(i) }},
		{"leases.coordination.k8s.io", s.Nodes(), func(i int) metav1.Object { return s.lease(i) }},
		{"replicasets.apps", s.ReplicaSets(), func(i int) metav1.Object { return s.replicaSet(i) }},
		{"pods", s.Pods, func(i int) metav1.Object { return s.Pod(i) }},
	}
}

// Objects returns the number of objects of all kinds.
func (s Shape) Objects() (n int) {
	for _, k := range s.kinds() {
		n += k.count
	}
	return n
}

// name identifies the files of this cluster.
func (s Shape) name() string { return fmt.Sprintf("bench-million-1-%d-%d", s.Pods, s.Seed) }

// File writes the cluster to path, unless it is there already. It fails with ErrOther if path is
// another backup.
func (s Shape) File(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return archive.WriteFile(path, s.Write)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	h, _, err := archive.Rows(f)
	if err == nil && h.ClusterID != s.name() {
		err = fmt.Errorf("%w: %q instead of %q", ErrOther, h.ClusterID, s.name())
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// Write writes the cluster as a backup.
func (s Shape) Write(out io.Writer) error {
	w, err := archive.NewWriter(out, archive.Header{Driver: "bench", ClusterID: s.name(), Revision: int64(s.Objects()), Floor: int64(s.Objects()), Taken: epoch})
	if err != nil {
		return err
	}
	revision := int64(0)
	for _, k := range s.kinds() {
		if revision, err = k.write(w, revision); err != nil {
			return err
		}
	}
	_, err = w.Close()
	return err
}

// batch is the number of objects that one goroutine makes in its turn.
const batch = 256

// write adds all objects of the kind, in their order; all processors encode them.
func (k kind) write(w *archive.Writer, revision int64) (int64, error) {
	lanes := runtime.GOMAXPROCS(0)
	type part struct {
		rows []sqlstore.Row
		err  error
	}
	ready := make([]chan part, lanes)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for lane := range lanes {
		ready[lane] = make(chan part, 2)
		wg.Go(func() {
			for from := lane * batch; from < k.count; from += lanes * batch {
				rows, err := k.rows(from, min(from+batch, k.count), revision)
				select {
				case ready[lane] <- part{rows, err}:
				case <-stop:
					return
				}
			}
		})
	}
	for n := 0; n*batch < k.count; n++ {
		p := <-ready[n%lanes]
		if p.err != nil {
			return 0, p.err
		}
		for _, row := range p.rows {
			if err := w.Add(row); err != nil {
				return 0, err
			}
		}
	}
	return revision + int64(k.count), nil
}

func (k kind) rows(from, to int, revision int64) ([]sqlstore.Row, error) {
	out := make([]sqlstore.Row, 0, to-from)
	for i := from; i < to; i++ {
		obj := k.make(i)
		value, err := json.Marshal(obj)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", k.resource, obj.GetName(), err)
		}
		at := revision + int64(i) + 1
		out = append(out, sqlstore.Row{
			Key: sqlstore.Key{Resource: k.resource, Namespace: obj.GetNamespace(), Name: obj.GetName()}, Revision: at, Created: at, WrittenAt: epoch, Value: value,
		})
	}
	return out, nil
}
