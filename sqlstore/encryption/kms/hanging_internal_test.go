package kms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	api "k8s.io/kms/apis/v2"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms/kmstest"
)

// guarded has each Decrypt pass what every call over a socket passes.
type guarded struct {
	direct
	line *line
}

func (g guarded) Decrypt(ctx context.Context, in *api.DecryptRequest, _ ...grpc.CallOption) (out *api.DecryptResponse, err error) {
	err = g.line.intercept(ctx, "/v2.KeyManagementService/Decrypt", in, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) (err error) {
		out, err = g.direct.Decrypt(ctx, in)
		return status.FromContextError(err).Err()
	})
	return out, err
}

// TestHanging: a plugin that hangs costs its timeout once in a while, and a bounded number
// of calls.
func TestHanging(t *testing.T) { synctest.Test(t, hangs) } // else a machine may take longer to begin 200 calls than a timeout and a pause

func hangs(t *testing.T) {
	plugin := kmstest.New("one")
	cfg := config("unix:///nowhere")
	l, err := dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.close() }()
	p := newV2(cfg, guarded{direct{plugin.V2()}, l}, func() error { return nil })
	check(t, p, "")
	other := make([][]byte, 0, 200) // values of as many data keys
	for i := range cap(other) {
		w := wrapped{keyID: "one", dataKey: []byte(fmt.Sprint("key ", i))}
		other = append(other, append(w.append(bytes.Clone(head)), make([]byte, 100)...))
	}
	before := plugin.Calls("Decrypt")
	plugin.SetBehavior(kmstest.Behavior{CallsHang: true})
	most := 0
	var wait sync.WaitGroup
	for _, stored := range other {
		wait.Go(func() {
			if _, _, err := p.Open(t.Context(), stored, len(head), row); !errors.Is(err, sqlstore.ErrKeyUnavailable) {
				t.Error(err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { wait.Wait(); close(ended) }()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(5 * time.Millisecond):
			most = max(most, plugin.Waiting())
		}
	}
	if most > 32 || plugin.Calls("Decrypt")-before > 32 {
		t.Errorf("%d calls at once, %d in all", most, plugin.Calls("Decrypt")-before)
	}
	before = plugin.Calls("Decrypt")
	for _, stored := range other { // would take a minute
		if _, _, err := p.Open(t.Context(), stored, len(head), row); !errors.Is(err, sqlstore.ErrKeyUnavailable) {
			t.Fatal(err)
		}
	}
	if n := plugin.Calls("Decrypt") - before; n > 32 {
		t.Errorf("%d calls of a plugin that is known to hang", n)
	}
	opens(t, p, seal(t, p), false) // what needs no call goes on
}
