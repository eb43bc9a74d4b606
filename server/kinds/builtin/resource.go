package builtin

import (
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/resource"
)

// resourceV1beta1V1alpha3 serves each storage in two versions; v1beta1 is preferred and
// stored.
func (c Config) resourceV1beta1V1alpha3() []*kinds.Resource {
	class := &kinds.Storage{Strategy: resource.DeviceClass}
	claim := &kinds.Storage{Strategy: resource.ResourceClaim(c.Feature)}
	template := &kinds.Storage{Strategy: resource.ResourceClaimTemplate(c.Feature)}
	slice := &kinds.Storage{Strategy: resource.ResourceSlice, Fields: resource.ResourceSliceFields, Indexed: []string{"spec.nodeName"}}
	claimStatus := func() []kinds.Subresource {
		return []kinds.Subresource{status("ResourceClaim", resource.ResourceClaimStatus(c.Feature))}
	}
	v1beta1 := rows("resource.k8s.io", "v1beta1",
		&kinds.Resource{
			Plural: "deviceclasses", Kind: "DeviceClass",
			New: object[resourcev1beta1.DeviceClass](), NewList: list[resourcev1beta1.DeviceClassList](),
			Storage: class, Columns: resource.DeviceClassColumns,
		},
		&kinds.Resource{
			Plural: "resourceclaims", Kind: "ResourceClaim", Namespaced: true,
			New: object[resourcev1beta1.ResourceClaim](), NewList: list[resourcev1beta1.ResourceClaimList](),
			Storage: claim, Columns: resource.ResourceClaimColumns, Subresources: claimStatus(),
		},
		&kinds.Resource{
			Plural: "resourceclaimtemplates", Kind: "ResourceClaimTemplate", Namespaced: true,
			New: object[resourcev1beta1.ResourceClaimTemplate](), NewList: list[resourcev1beta1.ResourceClaimTemplateList](),
			Storage: template, Columns: resource.ResourceClaimTemplateColumns,
		},
		&kinds.Resource{
			Plural: "resourceslices", Kind: "ResourceSlice",
			New: object[resourcev1beta1.ResourceSlice](), NewList: list[resourcev1beta1.ResourceSliceList](),
			Storage: slice, Columns: resource.ResourceSliceColumns,
			FieldRefusal: "field label not supported for ResourceSlice: %s",
		},
	)
	v1alpha3 := rows("resource.k8s.io", "v1alpha3",
		&kinds.Resource{
			Plural: "deviceclasses", Kind: "DeviceClass",
			New: object[resourcev1alpha3.DeviceClass](), NewList: list[resourcev1alpha3.DeviceClassList](),
			Storage: class, Columns: resource.DeviceClassColumns,
		},
		&kinds.Resource{
			Plural: "resourceclaims", Kind: "ResourceClaim", Namespaced: true,
			New: object[resourcev1alpha3.ResourceClaim](), NewList: list[resourcev1alpha3.ResourceClaimList](),
			Storage: claim, Columns: resource.ResourceClaimColumns, Subresources: claimStatus(),
		},
		&kinds.Resource{
			Plural: "resourceclaimtemplates", Kind: "ResourceClaimTemplate", Namespaced: true,
			New: object[resourcev1alpha3.ResourceClaimTemplate](), NewList: list[resourcev1alpha3.ResourceClaimTemplateList](),
			Storage: template, Columns: resource.ResourceClaimTemplateColumns,
		},
		&kinds.Resource{
			Plural: "resourceslices", Kind: "ResourceSlice",
			New: object[resourcev1alpha3.ResourceSlice](), NewList: list[resourcev1alpha3.ResourceSliceList](),
			Storage: slice, Columns: resource.ResourceSliceColumns,
			FieldRefusal: "field label not supported for ResourceSlice: %s",
		},
	)
	for i, r := range v1alpha3 {
		r.ToStorage, r.FromStorage = resource.Conversion(r.New, v1beta1[i].New)
	}
	return append(v1beta1, v1alpha3...)
}
