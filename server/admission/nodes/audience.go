package nodes

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// audience restricts an agent to audiences that volumes of the pod name, and to those that it has permission for.
func (p Restriction) audience(ctx context.Context, a *admission.Attributes, request *authenticationv1.TokenRequest, pod *corev1.Pod) error {
	audience := ""
	switch len(request.Spec.Audiences) {
	case 0:
	case 1:
		audience = request.Spec.Audiences[0]
	default:
		return fmt.Errorf("node may only request 0 or 1 audiences")
	}
	found, err := p.usesAudience(ctx, pod, audience)
	if err != nil {
		return fmt.Errorf("error validating audience %q: %v", audience, err)
	}
	if found {
		return nil
	}
	decision, _, err := p.Authorizer.Authorize(ctx, &authx.Attributes{
		User: a.User, Verb: "request-serviceaccounts-token-audience", Namespace: a.Namespace,
		APIVersion: "v1", Resource: audience, Name: a.Name, ResourceRequest: true,
	})
	switch {
	case decision == authx.Allow:
		return nil
	case err != nil:
		return fmt.Errorf("audience %q not found in pod spec volume, error authorizing %s to request tokens for this audience: %v", audience, a.User.Name, err)
	}
	return fmt.Errorf("audience %q not found in pod spec volume, %s is not authorized to request tokens for this audience", audience, a.User.Name)
}

// maxErrors limits the volumes of a pod that an error names: the time to join errors grows with the square of their number.
const maxErrors = 100

// usesAudience reports whether a volume of a pod requests tokens for an audience, itself or by its driver. If none does,
// it returns the errors of the volumes whose driver could not be read.
func (p Restriction) usesAudience(ctx context.Context, pod *corev1.Pod, audience string) (bool, error) {
	for i := range pod.Spec.Volumes { // before any object is read
		if projects(&pod.Spec.Volumes[i], audience) {
			return true, nil
		}
	}
	checked, claims := map[string]bool{}, map[string]bool{} // drivers and claims that were read already: volumes may share them
	var errs []error
	more := 0
	for i := range pod.Spec.Volumes {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		v := &pod.Spec.Volumes[i]
		name := claimName(pod, v)
		if claims[name] {
			continue
		}
		claims[name] = name != ""
		driver, err := p.driver(ctx, pod, v)
		found := false
		if err == nil && driver != "" && !checked[driver] {
			checked[driver] = true
			found, err = p.driverUses(ctx, driver, audience)
		}
		if found {
			return true, nil
		}
		switch {
		case err == nil:
		case len(errs) < maxErrors:
			errs = append(errs, err)
		default:
			more++
		}
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("%d more errors", more))
	}
	return false, utilerrors.NewAggregate(errs)
}

// projects reports whether a volume has a token for an audience.
func projects(v *corev1.Volume, audience string) bool {
	return v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool {
		return p.ServiceAccountToken != nil && p.ServiceAccountToken.Audience == audience
	})
}

// claimName returns the name of the claim of a volume; "" if it has none.
func claimName(pod *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		return pod.Name + "-" + v.Name
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// driver returns the CSI driver of a volume; "" if it has none.
func (p Restriction) driver(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (string, error) {
	claim := claimName(pod, v)
	switch {
	case claim != "":
		return p.driverOfClaim(ctx, pod.Namespace, claim)
	case v.CSI != nil:
		return v.CSI.Driver, nil
	case v.AWSElasticBlockStore != nil:
		return driverOfEBS, nil
	case v.GCEPersistentDisk != nil:
		return driverOfGCE, nil
	case v.AzureDisk != nil:
		return driverOfAzureDisk, nil
	case v.AzureFile != nil:
		return driverOfAzureFile, nil
	case v.Cinder != nil:
		return driverOfCinder, nil
	case v.VsphereVolume != nil:
		return driverOfVSphere, nil
	case v.PortworxVolume != nil:
		return driverOfPortworx, nil
	}
	return "", nil
}

// The CSI drivers that took the place of drivers in Kubernetes itself.
const (
	driverOfEBS       = "ebs.csi.aws.com"
	driverOfGCE       = "pd.csi.storage.gke.io"
	driverOfAzureDisk = "disk.csi.azure.com"
	driverOfAzureFile = "file.csi.azure.com"
	driverOfCinder    = "cinder.csi.openstack.org"
	driverOfVSphere   = "csi.vsphere.vmware.com"
	driverOfPortworx  = "pxd.portworx.com"
)

// driverOfClaim returns the CSI driver of the volume that a claim is bound to.
func (p Restriction) driverOfClaim(ctx context.Context, namespace, name string) (string, error) {
	stored, err := p.found(ctx, "persistentvolumeclaims", namespace, name, schema.GroupResource{Resource: "persistentvolumeclaims"})
	if err != nil {
		return "", err
	}
	claim, ok := stored.(*corev1.PersistentVolumeClaim)
	if !ok {
		return "", unexpected(stored)
	}
	if stored, err = p.found(ctx, "persistentvolumes", "", claim.Spec.VolumeName, schema.GroupResource{Resource: "persistentvolumes"}); err != nil {
		return "", err
	}
	volume, ok := stored.(*corev1.PersistentVolume)
	if !ok {
		return "", unexpected(stored)
	}
	switch s := &volume.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		return s.CSI.Driver, nil
	case s.AWSElasticBlockStore != nil:
		return driverOfEBS, nil
	case s.GCEPersistentDisk != nil:
		return driverOfGCE, nil
	case s.AzureDisk != nil:
		return driverOfAzureDisk, nil
	case s.AzureFile != nil:
		return driverOfAzureFile, nil
	case s.Cinder != nil:
		return driverOfCinder, nil
	case s.VsphereVolume != nil:
		return driverOfVSphere, nil
	case s.PortworxVolume != nil:
		return driverOfPortworx, nil
	}
	return "", nil
}

// driverUses reports whether a CSI driver requests tokens for an audience.
func (p Restriction) driverUses(ctx context.Context, name, audience string) (bool, error) {
	stored, err := p.found(ctx, "csidrivers.storage.k8s.io", "", name, storagev1.Resource("csidrivers"))
	if err != nil {
		return false, err
	}
	driver, ok := stored.(*storagev1.CSIDriver)
	if !ok {
		return false, unexpected(stored)
	}
	for _, request := range driver.Spec.TokenRequests {
		if request.Audience == audience {
			return true, nil
		}
	}
	return false, nil
}

// found returns an object, which must be there.
func (p Restriction) found(ctx context.Context, storage, namespace, name string, resource schema.GroupResource) (kinds.Object, error) {
	obj, err := p.Objects.Get(ctx, storage, namespace, name)
	if err == nil && obj == nil {
		err = apierrors.NewNotFound(resource, name)
	}
	return obj, err
}
