package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/schema"
)

// TestCrowded: the merge library is not asked for what it would take minutes for.
func TestCrowded(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	owner := apply.New(schema.New(catalogue))
	r := catalogue.Lookup("", "v1", "configmaps")
	for n, refused := range map[int]bool{5000: false, 100000: true} {
		var data strings.Builder
		for i := range n {
			fmt.Fprintf(&data, `,"k%d":"v"`, i)
		}
		body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{` + data.String()[1:] + `}}`
		_, err := owner.Apply(r, "", nil, []byte(body), "m", false, time.Now())
		if apierrors.IsRequestEntityTooLargeError(err) != refused || !refused && err != nil {
			t.Errorf("%d fields side by side: %v", n, err)
		}
	}
}
