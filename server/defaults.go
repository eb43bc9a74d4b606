package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds/apiregistration"
	"github.com/rowlock/rowlock/server/kinds/flowcontrol"
	"github.com/rowlock/rowlock/server/kinds/scheduling"
)

// defaultWriters is the number of default objects that are written concurrently; concurrent writes share a
// commit.
const defaultWriters = 16

// defaults creates the cluster objects that a stock server keeps: priority classes, flow schemas with their
// priority levels, and the APIServices of the groups that it serves. It changes existing objects only to
// correct the specs of APIServices that the server manages.
func (o *ownObjects) defaults(ctx context.Context) error {
	var missingObjects []func(context.Context) error
	add := func(agent, storage, path, name string, obj any) {
		if o.find(storage, "", name) != nil {
			return
		}
		missingObjects = append(missingObjects, func(ctx context.Context) error {
			return o.tolerate(storage+"/"+name, o.createAs(ctx, agent, path, obj))
		})
	}
	for _, c := range scheduling.SystemClasses() {
		add(apiserverAgent, "priorityclasses.scheduling.k8s.io", "/apis/scheduling.k8s.io/v1/priorityclasses", c.Name, c)
	}
	const flow = "/apis/flowcontrol.apiserver.k8s.io/v1/"
	for _, l := range append(flowcontrol.MandatoryLevels(), flowcontrol.SuggestedLevels()...) {
		add(flowcontrol.Producer, "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", flow+"prioritylevelconfigurations", l.Name, l)
	}
	for _, f := range append(flowcontrol.MandatorySchemas(), flowcontrol.SuggestedSchemas(o.cfg.Release)...) {
		const storage = "flowschemas.flowcontrol.apiserver.k8s.io"
		if o.find(storage, "", f.Name) == nil {
			missingObjects = append(missingObjects, func(ctx context.Context) error {
				return o.tolerate(storage+"/"+f.Name, o.createSchema(ctx, flow+"flowschemas", f))
			})
		}
	}
	for name, local := range o.locals() {
		add(apiserverAgent, apiServices, apiServicesPath, name, local)
		if changed := o.changedLocal(local); changed != nil {
			missingObjects = append(missingObjects, func(ctx context.Context) error { return o.restoreLocal(ctx, changed) })
		}
	}
	for _, name := range o.unserved() {
		missingObjects = append(missingObjects, func(ctx context.Context) error {
			err := o.api.Call(ctx, apiserverAgent, http.MethodDelete, apiServicesPath+"/"+name, "", nil, nil)
			if isReason(err, metav1.StatusReasonNotFound) {
				return nil
			}
			return err
		})
	}
	if err := access.InParallel(ctx, defaultWriters, missingObjects); err != nil {
		return fmt.Errorf("default objects: %w", err)
	}
	return nil
}

const (
	apiServices     = "apiservices.apiregistration.k8s.io"
	apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// locals returns the APIServices of served groups, by name.
func (o *ownObjects) locals() map[string]*apiregistrationv1.APIService {
	found := map[string]*apiregistrationv1.APIService{}
	for _, r := range o.cfg.Catalogue.All() {
		if local := apiregistration.Local(r.GVR().GroupVersion()); local != nil {
			found[local.Name] = local
		}
	}
	return found
}

// changedLocal returns the correct APIService of a served group if a client has changed its spec but not the label by
// which the server manages it; otherwise nil.
func (o *ownObjects) changedLocal(local *apiregistrationv1.APIService) *apiregistrationv1.APIService {
	item := o.cache.Get(apiServices, "", local.Name)
	if item == nil || item.Err() != nil || item.Meta().Labels[apiregistration.AutoManaged] != apiregistration.OnStart {
		return nil
	}
	var have apiregistrationv1.APIService
	var err error
	if cache.Try(func() { err = json.Unmarshal(item.JSON(), &have) }) != nil || err != nil || reflect.DeepEqual(have.Spec, local.Spec) {
		return nil
	}
	have.Spec = local.Spec
	have.ResourceVersion = strconv.FormatInt(item.Revision, 10)
	return &have
}

// restoreLocal writes the result of changedLocal. A concurrent change wins.
func (o *ownObjects) restoreLocal(ctx context.Context, s *apiregistrationv1.APIService) error {
	err := o.api.Call(ctx, apiserverAgent, http.MethodPut, apiServicesPath+"/"+s.Name, jsonType, s, nil)
	if isReason(err, metav1.StatusReasonConflict) || isReason(err, metav1.StatusReasonNotFound) {
		return nil
	}
	return o.tolerate(apiServices+"/"+s.Name, err)
}

// unserved returns the names of APIServices that an earlier start created for versions that are disabled now.
func (o *ownObjects) unserved() []string {
	var names []string
	locals := o.locals()
	o.cache.Snapshot(apiServices).Ascend("", "", "", func(item *cache.Item) bool {
		if locals[item.Name] == nil && item.Err() == nil && item.Meta().Labels[apiregistration.AutoManaged] == apiregistration.OnStart {
			names = append(names, item.Name)
		}
		return true
	})
	return names
}

// createSchema creates a flow schema, with the condition that its priority level exists.
func (o *ownObjects) createSchema(ctx context.Context, path string, f *flowcontrolv1.FlowSchema) error {
	if err := o.createAs(ctx, flowcontrol.Producer, path, f); err != nil {
		return err
	}
	c := flowcontrol.Dangling(f.Spec.PriorityLevelConfiguration.Name, true, o.cfg.Clock())
	path += "/" + f.Name + "/status?force=true&fieldManager=" + flowcontrol.Consumer
	return o.api.Call(ctx, flowcontrol.Consumer, http.MethodPatch, path, "application/apply-patch+yaml", flowcontrol.Applied(f.Name, c), nil)
}
