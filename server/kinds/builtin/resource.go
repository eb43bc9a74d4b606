package builtin

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	newv1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/resource"
	resourcev1alpha3 "github.com/rowlock/rowlock/server/removed/k8s.io/api/resource/v1alpha3"
)

// resourceGroup serves each storage in several versions, of which v1beta1 is stored.
func (c Config) resourceGroup() []*kinds.Resource {
	by := resource.Of(c.Release, c.Feature)
	class := &kinds.Storage{Strategy: by.Class}
	claim := &kinds.Storage{Strategy: by.Claim}
	template := &kinds.Storage{Strategy: by.Template}
	slice := &kinds.Storage{Strategy: by.Slice, Fields: resource.ResourceSliceFields, Indexed: []string{"spec.nodeName"}}
	// of makes the resources of one version, of its types.
	of := func(version string, types resourceTypes) []*kinds.Resource {
		return rows("resource.k8s.io", version,
			&kinds.Resource{Plural: "deviceclasses", Kind: "DeviceClass", New: types[0].one, NewList: types[0].list, Storage: class, Columns: resource.DeviceClassColumns},
			&kinds.Resource{
				Plural: "resourceclaims", Kind: "ResourceClaim", Namespaced: true, New: types[1].one, NewList: types[1].list,
				Storage: claim, Columns: resource.ResourceClaimColumns,
				Subresources: []kinds.Subresource{status()},
			},
			&kinds.Resource{
				Plural: "resourceclaimtemplates", Kind: "ResourceClaimTemplate", Namespaced: true, New: types[2].one, NewList: types[2].list,
				Storage: template, Columns: resource.ResourceClaimTemplateColumns,
			},
			&kinds.Resource{
				Plural: "resourceslices", Kind: "ResourceSlice", New: types[3].one, NewList: types[3].list,
				Storage: slice, Columns: resource.ResourceSliceColumns,
				FieldRefusal: "field label not supported for resource.k8s.io/" + version + ", Kind=ResourceSlice: %s",
			},
		)
	}
	v1beta1 := of("v1beta1", resourceTypes{
		{object[resourcev1beta1.DeviceClass](), list[resourcev1beta1.DeviceClassList]()},
		{object[resourcev1beta1.ResourceClaim](), list[resourcev1beta1.ResourceClaimList]()},
		{object[resourcev1beta1.ResourceClaimTemplate](), list[resourcev1beta1.ResourceClaimTemplateList]()},
		{object[resourcev1beta1.ResourceSlice](), list[resourcev1beta1.ResourceSliceList]()},
	})
	newer := resourceTypes{
		{object[resourcev1.DeviceClass](), list[resourcev1.DeviceClassList]()},
		{object[resourcev1.ResourceClaim](), list[resourcev1.ResourceClaimList]()},
		{object[resourcev1.ResourceClaimTemplate](), list[resourcev1.ResourceClaimTemplateList]()},
		{object[resourcev1.ResourceSlice](), list[resourcev1.ResourceSliceList]()},
	}
	groups := [][]*kinds.Resource{
		of("v1", newer),
		of("v1beta2", newer),
		v1beta1,
		of("v1alpha3", resourceTypes{
			{object[resourcev1alpha3.DeviceClass](), list[resourcev1alpha3.DeviceClassList]()},
			{object[resourcev1alpha3.ResourceClaim](), list[resourcev1alpha3.ResourceClaimList]()},
			{object[resourcev1alpha3.ResourceClaimTemplate](), list[resourcev1alpha3.ResourceClaimTemplateList]()},
			{object[resourcev1alpha3.ResourceSlice](), list[resourcev1alpha3.ResourceSliceList]()},
		}),
	}
	for _, group := range groups {
		for i, r := range group {
			if r.GVK() != r.Storage.GVK {
				r.ToStorage, _ = kinds.Conversion(r.New, v1beta1[i].New, resource.Requested)
				_, r.FromStorage = kinds.Conversion(r.New, v1beta1[i].New, resource.Different)
			}
		}
	}
	taintRules := rows("resource.k8s.io", "v1alpha3", &kinds.Resource{
		Plural: "devicetaintrules", Kind: "DeviceTaintRule",
		New: object[newv1alpha3.DeviceTaintRule](), NewList: list[newv1alpha3.DeviceTaintRuleList](),
		Storage: &kinds.Storage{Strategy: by.TaintRule}, Columns: resource.DeviceTaintRuleColumns,
		Subresources: []kinds.Subresource{status()},
	})
	requests := rows("resource.k8s.io", "v1alpha3", &kinds.Resource{
		Plural: "resourcepoolstatusrequests", Kind: "ResourcePoolStatusRequest",
		New: object[newv1alpha3.ResourcePoolStatusRequest](), NewList: list[newv1alpha3.ResourcePoolStatusRequestList](),
		Storage: &kinds.Storage{Strategy: by.PoolRequest}, Columns: resource.PoolRequestColumns,
		Subresources: []kinds.Subresource{status()},
	})
	groups[1] = byName(append(groups[1], again(taintRules[0], "v1beta2")))
	groups[3] = byName(slices.Concat(groups[3], taintRules, requests))
	return slices.Concat(groups...)
}

// resourceTypes make the objects and lists of each resource, in the order of the table.
type resourceTypes [4]struct {
	one  func() kinds.Object
	list func() runtime.Object
}
