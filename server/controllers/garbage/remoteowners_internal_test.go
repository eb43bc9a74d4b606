package garbage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

// toys is a server that has one toy, refuses some names, and may not answer.
type toys struct {
	asked []string
	away  bool
}

func (s *toys) Call(_ context.Context, _, _, path, _ string, _, into any) error {
	name := path[strings.LastIndex(path, "/")+1:]
	s.asked = append(s.asked, name)
	switch {
	case s.away:
		return apierrors.NewServiceUnavailable("away")
	case name == "bear":
		into.(*metav1.PartialObjectMetadata).UID = "1"
		return nil
	}
	return apierrors.NewBadRequest("a toy cannot have this name")
}

// TestRefusedOwner: an owner whose name its server refuses does not keep the owners of others from being looked up; a server that
// does not answer is left alone for a while.
func TestRefusedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &toys{}
		m := newMemory(func(c *Collector) { c.Remote, c.API = others{}, server })
		s := &subject{item: &cache.Item{Namespace: "n"}}
		resolve := func(name string, known bool) {
			t.Helper()
			o, err := m.processor.remote.resolveOwner(t.Context(), s, &cache.Owner{APIVersion: "toys.example.com/v1", Kind: "Toy", Name: name, UID: "1"})
			if o != solid || (err == nil) != known || !known && !errors.Is(err, errUnknown) {
				t.Errorf("%q: %v, %v", name, o, err)
			}
		}
		resolve("..", false)
		resolve("a/b", false)
		resolve("No Toy", false)
		resolve("bear", true)
		if len(server.asked) != 2 {
			t.Errorf("the server was asked for %q", server.asked)
		}
		time.Sleep(answerLasts)
		server.away = true
		resolve("bear", false)
		resolve("bear", false)
		if len(server.asked) != 3 {
			t.Errorf("the silent server was asked for %q", server.asked[2:])
		}
	})
}
