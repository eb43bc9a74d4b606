package flow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/flow"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
)

// TestFlowObjectsAreRepaired: within a minute mandatory objects exist with their values, suggested
// ones unless their annotation opts out, and objects that falsely claim to be the server's are
// gone.
func TestFlowObjectsAreRepaired(t *testing.T) {
	const (
		schemas = "flowschemas.flowcontrol.apiserver.k8s.io"
		levels  = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
	)
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := &flow.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}}
		go func() {
			if err := f.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		minute := func() (writes []string) {
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, w := range c.Written() {
				if !strings.Contains(w, "/status?") {
					writes = append(writes, strings.Replace(w, "/apis/flowcontrol.apiserver.k8s.io/v1/", "", 1))
				}
			}
			slices.Sort(writes)
			return writes
		}
		if w := minute(); len(w) != 8+13 {
			t.Errorf("nothing was there: %q", w)
		}
		if w := minute(); len(w) != 0 {
			t.Errorf("everything is as it is to be: %q", w)
		}
		schema := func(name string, change func(*flowcontrolv1.FlowSchema)) {
			var s flowcontrolv1.FlowSchema
			c.Get(schemas, "", name, &s)
			if s.Annotations == nil {
				s.Annotations = map[string]string{}
			}
			change(&s)
			c.Set(schemas, "", name, &s)
		}
		precedence := func(s *flowcontrolv1.FlowSchema) { s.Spec.MatchingPrecedence = 77 }
		note := func(text string, also func(*flowcontrolv1.FlowSchema)) func(*flowcontrolv1.FlowSchema) {
			return func(s *flowcontrolv1.FlowSchema) {
				if s.Annotations[flowcontrol.AutoUpdate] = text; text == "" {
					delete(s.Annotations, flowcontrol.AutoUpdate)
				}
				if also != nil {
					also(s)
				}
			}
		}
		c.Set(schemas, "", "workload-leader-election", nil)
		c.Set(levels, "", "workload-low", nil)
		synctest.Wait() // the conditions of those that name it are written: what follows reads and writes whole schemas
		schema("exempt", note("false", nil))
		schema("system-nodes", note("false", precedence))
		schema("kube-scheduler", note("", precedence))
		schema("endpoint-controller", note("", nil))
		schema("service-accounts", note("perhaps", nil))
		schema("probes", note("1", precedence))
		schema("catch-all", note("", nil))
		schema("global-default", note("1", nil))
		schema("my", note("T", precedence))
		schema("mine", note("true", precedence))
		schema("other", note("false", precedence))
		c.Set(levels, "", "exempt", &flowcontrolv1.PriorityLevelConfiguration{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{flowcontrol.AutoUpdate: "false"}},
			Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
				Type: "Exempt", Exempt: &flowcontrolv1.ExemptPriorityLevelConfiguration{NominalConcurrencyShares: ptr.To[int32](11), LendablePercent: ptr.To[int32](5)},
			},
		})
		want := []string{
			"DELETE flowschemas/mine", "DELETE flowschemas/my", "POST flowschemas", "POST prioritylevelconfigurations",
			"PUT flowschemas/catch-all", "PUT flowschemas/endpoint-controller", "PUT flowschemas/exempt", "PUT flowschemas/kube-scheduler",
			"PUT flowschemas/probes", "PUT flowschemas/service-accounts", "PUT prioritylevelconfigurations/exempt",
		}
		if w := minute(); !slices.Equal(w, want) {
			t.Errorf("%q\nwant %q", w, want)
		}
		for name, want := range map[string]string{
			"catch-all": "10000 true", "exempt": "1 true", "global-default": "9900 1", "system-nodes": "77 false", "kube-scheduler": "77 false",
			"endpoint-controller": "150 true", "service-accounts": "9000 false", "probes": "2 1", "other": "77 false",
		} {
			var s flowcontrolv1.FlowSchema
			c.Get(schemas, "", name, &s)
			if got := fmt.Sprint(s.Spec.MatchingPrecedence, " ", s.Annotations[flowcontrol.AutoUpdate]); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		var exempt flowcontrolv1.PriorityLevelConfiguration
		if c.Get(levels, "", "exempt", &exempt); *exempt.Spec.Exempt.NominalConcurrencyShares != 11 || *exempt.Spec.Exempt.LendablePercent != 5 || exempt.Annotations[flowcontrol.AutoUpdate] != "true" {
			t.Errorf("the exempt level: %+v", exempt)
		}
		if w := minute(); len(w) != 0 {
			t.Errorf("everything was repaired: %q", w)
		}
		c.Set(levels, "", "system", nil)
		c.Lock()
		c.Fail = 1000 // the condition of each schema that names it, again and again
		c.Unlock()
		if w := minute(); !slices.Contains(w, "POST prioritylevelconfigurations") {
			t.Errorf("while conditions cannot be written nothing is repaired: %q", w)
		}
	})
}
