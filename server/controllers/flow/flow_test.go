package flow_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/flow"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

func TestFlowSchemas(t *testing.T) {
	const (
		schemas = "flowschemas.flowcontrol.apiserver.k8s.io"
		levels  = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
		found   = `Found False This FlowSchema references the PriorityLevelConfiguration object named "low" and it exists`
		missing = `NotFound True This FlowSchema references the PriorityLevelConfiguration object named "low" but there is no such object`
	)
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		want := func(step, name, text string, writes int) {
			t.Helper()
			synctest.Wait()
			var s flowcontrolv1.FlowSchema
			c.Get(schemas, "", name, &s)
			got := ""
			for _, d := range s.Status.Conditions {
				got += string(d.Reason) + " " + string(d.Status) + " " + d.Message
				if d.Type != "Dangling" || d.Reason != "Me" && !d.LastTransitionTime.Time.Equal(time.Now().Truncate(time.Second)) {
					t.Errorf("%s: %+v at %s", step, d, time.Now())
				}
			}
			if got != text {
				t.Errorf("%s: %s, want %s", step, got, text)
			}
			w := slices.DeleteFunc(c.Written(), func(w string) bool { // those that every cluster has are made at the start
				return !strings.Contains(w, "/flowschemas/a/") && !strings.Contains(w, "/flowschemas/b/") && !strings.Contains(w, "/flowschemas/d/")
			})
			if len(w) != writes {
				t.Errorf("%s: %d writes, want %d: %q", step, len(w), writes, w)
			}
		}
		schema := func(name, level string, conditions ...flowcontrolv1.FlowSchemaCondition) {
			s := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}}
			s.Spec.PriorityLevelConfiguration.Name = level
			s.Status.Conditions = conditions
			c.Set(schemas, "", name, s)
		}
		level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "low"}}
		schema("a", "low")
		f := &flow.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}}
		go func() {
			if err := f.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		want("there from the start", "a", missing, 1)
		schema("b", "low")
		want("a new one", "b", missing, 1)
		c.Set(levels, "", "low", level)
		want("the level comes", "a", found, 2)
		level.Labels = map[string]string{"a": "b"}
		c.Set(levels, "", "low", level)
		want("the level changes", "b", found, 0)
		schema("a", "none")
		want("another level is named", "a", `NotFound True This FlowSchema references the PriorityLevelConfiguration object named "none" but there is no such object`, 1)
		schema("a", "low", flowcontrolv1.FlowSchemaCondition{Type: "Dangling", Status: "False", Reason: "Me", Message: "mine"})
		want("somebody else speaks", "a", found, 1)
		c.Set(levels, "", "low", nil)
		want("the level goes", "a", missing, 2)
		c.Lock()
		c.Fail = 1
		c.Unlock()
		schema("d", "low")
		want("a write fails", "d", "", 1)
		time.Sleep(time.Second)
		want("and is tried again", "d", missing, 1)
		c.Set(schemas, "", "d", nil)
		want("a schema goes", "d", "", 0)
	})
}
