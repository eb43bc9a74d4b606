package server

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds/apiregistration"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/kinds/scheduling"
)

// The field managers of the flow control objects that are there from the start.
const (
	flowProducer = "api-priority-and-fairness-config-producer-v1"
	flowConsumer = "api-priority-and-fairness-config-consumer-v1"
)

// defaultWriters bounds how many default objects are written at once; writes that
// meet share a commit.
const defaultWriters = 16

// defaults writes the cluster objects that a stock server keeps: priority classes,
// flow schemas with their priority levels, and the APIServices of what it serves.
// What is there already stays as it is.
func (s *Server) defaults(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(defaultWriters)
	add := func(agent, storage, path, name string, obj any) {
		if s.Cache.Get(storage, "", name) != nil {
			return
		}
		group.Go(func() error { return s.createAs(ctx, agent, path, obj) })
	}
	for _, c := range scheduling.SystemClasses() {
		add(apiserverAgent, "priorityclasses.scheduling.k8s.io", "/apis/scheduling.k8s.io/v1/priorityclasses", c.Name, c)
	}
	const flow = "/apis/flowcontrol.apiserver.k8s.io/v1/"
	for _, l := range append(flowcontrol.MandatoryLevels(), flowcontrol.SuggestedLevels()...) {
		add(flowProducer, "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", flow+"prioritylevelconfigurations", l.Name, l)
	}
	for _, f := range append(flowcontrol.MandatorySchemas(), flowcontrol.SuggestedSchemas()...) {
		if s.Cache.Get("flowschemas.flowcontrol.apiserver.k8s.io", "", f.Name) == nil {
			group.Go(func() error { return s.createSchema(ctx, flow+"flowschemas", f) })
		}
	}
	seen := map[schema.GroupVersion]bool{}
	for _, r := range s.cfg.Catalogue.All() {
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		if local := apiregistration.Local(gv); local != nil && !seen[gv] {
			seen[gv] = true
			add(apiserverAgent, "apiservices.apiregistration.k8s.io", "/apis/apiregistration.k8s.io/v1/apiservices", local.Name, local)
		}
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("default objects: %w", err)
	}
	return nil
}

// createSchema writes a flow schema and says that its priority level exists.
func (s *Server) createSchema(ctx context.Context, path string, f *flowcontrolv1.FlowSchema) error {
	if err := s.createAs(ctx, flowProducer, path, f); err != nil {
		return err
	}
	level := f.Spec.PriorityLevelConfiguration.Name
	body := map[string]any{
		"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "FlowSchema",
		"metadata": map[string]any{"name": f.Name},
		"status": flowcontrolv1.FlowSchemaStatus{Conditions: []flowcontrolv1.FlowSchemaCondition{{
			Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse,
			LastTransitionTime: metav1.Time{Time: s.cfg.Clock()}, Reason: "Found",
			Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level),
		}}},
	}
	return s.Call(ctx, flowConsumer, http.MethodPatch, path+"/"+f.Name+"/status?force=true&fieldManager="+flowConsumer, "application/apply-patch+yaml", body, nil)
}
