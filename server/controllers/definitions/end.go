package definitions

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// end removes the objects of a definition that is being deleted, and lets it go when
// there are none. crd is a copy of one.
func (d *writer) end(ctx context.Context, one *definition, crd *apiextensionsv1.CustomResourceDefinition) error {
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		terminating(crd, apiextensionsv1.ConditionFalse, "NeverEstablished", "resource was never established")
		return d.release(ctx, one, crd)
	}
	if old := apihelpers.FindCRDCondition(crd, apiextensionsv1.Terminating); old == nil || old.Reason == "InstanceDeletionPending" {
		terminating(crd, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
		if err := d.status(ctx, one, crd); err != nil {
			return err
		}
		crd = one.crd.DeepCopy()
	}
	left, err := d.empty(ctx, crd)
	switch {
	case err != nil:
		terminating(crd, apiextensionsv1.ConditionTrue, "InstanceDeletionFailed", fmt.Sprintf("could not issue all deletes: %v", err))
		return errors.Join(err, d.status(ctx, one, crd))
	case left > 0:
		return nil // it is checked again after pollEvery
	}
	terminating(crd, apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
	return d.release(ctx, one, crd)
}

func terminating(crd *apiextensionsv1.CustomResourceDefinition, status apiextensionsv1.ConditionStatus, reason, message string) {
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message,
	})
}

// empty deletes all objects of a definition, and returns the number of remaining ones.
func (d *writer) empty(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (left int, err error) {
	storage := crd.Status.AcceptedNames.Plural + "." + crd.Spec.Group
	namespaces := map[string]bool{} // those with undeleted objects
	d.Cache.Snapshot(storage).Ascend("", "", "", func(item *cache.Item) bool {
		if item.Err() == nil && !item.Meta().Deleting {
			namespaces[item.Namespace] = true
		}
		return true
	})
	version, err := apihelpers.GetCRDStorageVersion(crd)
	if err != nil {
		return 0, err
	}
	for namespace := range namespaces {
		path := "/apis/" + crd.Spec.Group + "/" + version + "/"
		if namespace != "" {
			path += "namespaces/" + namespace + "/"
		}
		one := d.API.Call(ctx, agent, http.MethodDelete, path+crd.Status.AcceptedNames.Plural, "", nil, nil)
		if one != nil && !apierrors.IsNotFound(one) {
			err = errors.Join(err, one)
		}
	}
	return d.Cache.Count(storage), err
}

// release takes the finalizer from a definition.
func (d *writer) release(ctx context.Context, one *definition, crd *apiextensionsv1.CustomResourceDefinition) error {
	if err := d.status(ctx, one, crd); err != nil {
		return err
	}
	next := one.crd.DeepCopy()
	apihelpers.CRDRemoveFinalizer(next, apiextensionsv1.CustomResourceCleanupFinalizer)
	err := d.API.Call(ctx, agent, http.MethodPatch, definitionsPath+crd.Name, reconcile.MergePatch, map[string]any{
		"metadata": map[string]any{"uid": next.UID, "resourceVersion": next.ResourceVersion, "finalizers": next.Finalizers},
	}, nil)
	if reconcile.Current(err) != nil {
		return fmt.Errorf("removing the finalizer: %w", err)
	}
	return d.remove(ctx, crd)
}

// remove deletes a definition once more: one that is being deleted and has lost its last finalizer is removed
// only by another DELETE.
func (d *writer) remove(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	return reconcile.Current(d.API.Call(ctx, agent, http.MethodDelete, definitionsPath+crd.Name, reconcile.JSON, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &crd.UID},
	}, nil))
}
