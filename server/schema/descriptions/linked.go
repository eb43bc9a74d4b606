package descriptions

import (
	_ "unsafe" // for go:linkname

	_ "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	_ "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	_ "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
)

// A publication is one exported function that makes the definitions of all its types, so the linker keeps
// all of them: 1.1 MB of code, of which a quarter is about what nothing else describes. So the functions of
// single types are named here as the linker knows them (docs/design/size.md). One that is gone fails the build;
// TestPartsAreEnough holds what they say to the whole publications.

// part makes the definition of one type.
type part struct {
	name string // of the type, see Name
	make func(common.ReferenceCallback) common.OpenAPIDefinition
}

var parts = []part{
	{"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime", metaMicroTime},
	{"k8s.io/apimachinery/pkg/apis/meta/v1.Patch", metaPatch},
	{"k8s.io/apimachinery/pkg/apis/meta/v1.Time", metaTime},
	{"k8s.io/apimachinery/pkg/apis/meta/v1.WatchEvent", metaWatchEvent},
	{"k8s.io/apimachinery/pkg/runtime.RawExtension", runtimeRawExtension},
	{"k8s.io/apimachinery/pkg/version.Info", versionInfo},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIService", registrationAPIService},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIServiceCondition", registrationAPIServiceCondition},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIServiceList", registrationAPIServiceList},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIServiceSpec", registrationAPIServiceSpec},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.APIServiceStatus", registrationAPIServiceStatus},
	{"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.ServiceReference", registrationServiceReference},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.ConversionRequest", extensionsConversionRequest},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.ConversionResponse", extensionsConversionResponse},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.ConversionReview", extensionsConversionReview},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceColumnDefinition", extensionsCustomResourceColumnDefinition},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceConversion", extensionsCustomResourceConversion},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinition", extensionsCustomResourceDefinition},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinitionCondition", extensionsCustomResourceDefinitionCondition},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinitionList", extensionsCustomResourceDefinitionList},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinitionNames", extensionsCustomResourceDefinitionNames},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinitionSpec", extensionsCustomResourceDefinitionSpec},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinitionStatus", extensionsCustomResourceDefinitionStatus},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceDefinitionVersion", extensionsCustomResourceDefinitionVersion},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceSubresourceScale", extensionsCustomResourceSubresourceScale},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceSubresourceStatus", extensionsCustomResourceSubresourceStatus},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceSubresources", extensionsCustomResourceSubresources},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.CustomResourceValidation", extensionsCustomResourceValidation},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.ExternalDocumentation", extensionsExternalDocumentation},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON", extensionsJSON},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps", extensionsJSONSchemaProps},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray", extensionsJSONSchemaPropsOrArray},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool", extensionsJSONSchemaPropsOrBool},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray", extensionsJSONSchemaPropsOrStringArray},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.SelectableField", extensionsSelectableField},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.ServiceReference", extensionsServiceReference},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.ValidationRule", extensionsValidationRule},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.WebhookClientConfig", extensionsWebhookClientConfig},
	{"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.WebhookConversion", extensionsWebhookConversion},
	{"k8s.io/api/core/v1.AppArmorProfile", coreAppArmorProfile},
	{"k8s.io/api/core/v1.AzureDiskVolumeSource", coreAzureDiskVolumeSource},
	{"k8s.io/api/core/v1.Container", coreContainer},
	{"k8s.io/api/core/v1.ContainerPort", coreContainerPort},
	{"k8s.io/api/core/v1.HTTPGetAction", coreHTTPGetAction},
	{"k8s.io/api/core/v1.HostPathVolumeSource", coreHostPathVolumeSource},
	{"k8s.io/api/core/v1.List", coreList},
	{"k8s.io/api/core/v1.ModifyVolumeStatus", coreModifyVolumeStatus},
	{"k8s.io/api/core/v1.NamespaceStatus", coreNamespaceStatus},
	{"k8s.io/api/core/v1.NodeSelectorRequirement", coreNodeSelectorRequirement},
	{"k8s.io/api/core/v1.NodeStatus", coreNodeStatus},
	{"k8s.io/api/core/v1.PersistentVolumeClaimStatus", corePersistentVolumeClaimStatus},
	{"k8s.io/api/core/v1.PersistentVolumeSpec", corePersistentVolumeSpec},
	{"k8s.io/api/core/v1.PersistentVolumeStatus", corePersistentVolumeStatus},
	{"k8s.io/api/core/v1.PodSecurityContext", corePodSecurityContext},
	{"k8s.io/api/core/v1.PodSpec", corePodSpec},
	{"k8s.io/api/core/v1.PodStatus", corePodStatus},
	{"k8s.io/api/core/v1.ScopedResourceSelectorRequirement", coreScopedResourceSelectorRequirement},
	{"k8s.io/api/core/v1.SeccompProfile", coreSeccompProfile},
	{"k8s.io/api/core/v1.SecurityContext", coreSecurityContext},
	{"k8s.io/api/core/v1.ServiceSpec", coreServiceSpec},
	{"k8s.io/api/core/v1.Toleration", coreToleration},
	{"k8s.io/api/core/v1.TopologySpreadConstraint", coreTopologySpreadConstraint},
	{"k8s.io/api/core/v1.VolumeMount", coreVolumeMount},
	{"k8s.io/apimachinery/pkg/api/resource.Quantity", resourceQuantity},
}

//go:linkname metaMicroTime k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_meta_v1_MicroTime
func metaMicroTime(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname metaPatch k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_meta_v1_Patch
func metaPatch(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname metaTime k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_meta_v1_Time
func metaTime(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname metaWatchEvent k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_meta_v1_WatchEvent
func metaWatchEvent(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname runtimeRawExtension k8s.io/kube-aggregator/pkg/generated/openapi.schema_k8sio_apimachinery_pkg_runtime_RawExtension
func runtimeRawExtension(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname versionInfo k8s.io/kube-aggregator/pkg/generated/openapi.schema_k8sio_apimachinery_pkg_version_Info
func versionInfo(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname registrationAPIService k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_apiregistration_v1_APIService
func registrationAPIService(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname registrationAPIServiceCondition k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_apiregistration_v1_APIServiceCondition
func registrationAPIServiceCondition(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname registrationAPIServiceList k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_apiregistration_v1_APIServiceList
func registrationAPIServiceList(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname registrationAPIServiceSpec k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_apiregistration_v1_APIServiceSpec
func registrationAPIServiceSpec(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname registrationAPIServiceStatus k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_apiregistration_v1_APIServiceStatus
func registrationAPIServiceStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname registrationServiceReference k8s.io/kube-aggregator/pkg/generated/openapi.schema_pkg_apis_apiregistration_v1_ServiceReference
func registrationServiceReference(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsConversionRequest k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_ConversionRequest
func extensionsConversionRequest(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsConversionResponse k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_ConversionResponse
func extensionsConversionResponse(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsConversionReview k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_ConversionReview
func extensionsConversionReview(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceColumnDefinition k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceColumnDefinition
func extensionsCustomResourceColumnDefinition(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceConversion k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceConversion
func extensionsCustomResourceConversion(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceDefinition k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceDefinition
func extensionsCustomResourceDefinition(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceDefinitionCondition k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceDefinitionCondition
func extensionsCustomResourceDefinitionCondition(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceDefinitionList k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceDefinitionList
func extensionsCustomResourceDefinitionList(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceDefinitionNames k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceDefinitionNames
func extensionsCustomResourceDefinitionNames(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceDefinitionSpec k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceDefinitionSpec
func extensionsCustomResourceDefinitionSpec(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceDefinitionStatus k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceDefinitionStatus
func extensionsCustomResourceDefinitionStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceDefinitionVersion k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceDefinitionVersion
func extensionsCustomResourceDefinitionVersion(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceSubresourceScale k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceSubresourceScale
func extensionsCustomResourceSubresourceScale(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceSubresourceStatus k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceSubresourceStatus
func extensionsCustomResourceSubresourceStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceSubresources k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceSubresources
func extensionsCustomResourceSubresources(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsCustomResourceValidation k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_CustomResourceValidation
func extensionsCustomResourceValidation(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsExternalDocumentation k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_ExternalDocumentation
func extensionsExternalDocumentation(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsJSON k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_JSON
func extensionsJSON(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsJSONSchemaProps k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_JSONSchemaProps
func extensionsJSONSchemaProps(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsJSONSchemaPropsOrArray k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_JSONSchemaPropsOrArray
func extensionsJSONSchemaPropsOrArray(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsJSONSchemaPropsOrBool k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_JSONSchemaPropsOrBool
func extensionsJSONSchemaPropsOrBool(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsJSONSchemaPropsOrStringArray k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_JSONSchemaPropsOrStringArray
func extensionsJSONSchemaPropsOrStringArray(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsSelectableField k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_SelectableField
func extensionsSelectableField(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsServiceReference k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_ServiceReference
func extensionsServiceReference(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsValidationRule k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_ValidationRule
func extensionsValidationRule(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsWebhookClientConfig k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_WebhookClientConfig
func extensionsWebhookClientConfig(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname extensionsWebhookConversion k8s.io/apiextensions-apiserver/pkg/generated/openapi.schema_pkg_apis_apiextensions_v1_WebhookConversion
func extensionsWebhookConversion(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreAppArmorProfile sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_AppArmorProfile
func coreAppArmorProfile(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreAzureDiskVolumeSource sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_AzureDiskVolumeSource
func coreAzureDiskVolumeSource(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreContainer sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_Container
func coreContainer(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreContainerPort sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_ContainerPort
func coreContainerPort(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreHTTPGetAction sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_HTTPGetAction
func coreHTTPGetAction(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreHostPathVolumeSource sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_HostPathVolumeSource
func coreHostPathVolumeSource(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreList sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_List
func coreList(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreModifyVolumeStatus sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_ModifyVolumeStatus
func coreModifyVolumeStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreNamespaceStatus sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_NamespaceStatus
func coreNamespaceStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreNodeSelectorRequirement sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_NodeSelectorRequirement
func coreNodeSelectorRequirement(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreNodeStatus sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_NodeStatus
func coreNodeStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname corePersistentVolumeClaimStatus sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_PersistentVolumeClaimStatus
func corePersistentVolumeClaimStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname corePersistentVolumeSpec sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_PersistentVolumeSpec
func corePersistentVolumeSpec(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname corePersistentVolumeStatus sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_PersistentVolumeStatus
func corePersistentVolumeStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname corePodSecurityContext sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_PodSecurityContext
func corePodSecurityContext(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname corePodSpec sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_PodSpec
func corePodSpec(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname corePodStatus sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_PodStatus
func corePodStatus(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreScopedResourceSelectorRequirement sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_ScopedResourceSelectorRequirement
func coreScopedResourceSelectorRequirement(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreSeccompProfile sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_SeccompProfile
func coreSeccompProfile(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreSecurityContext sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_SecurityContext
func coreSecurityContext(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreServiceSpec sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_ServiceSpec
func coreServiceSpec(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreToleration sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_Toleration
func coreToleration(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreTopologySpreadConstraint sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_TopologySpreadConstraint
func coreTopologySpreadConstraint(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname coreVolumeMount sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_k8sio_api_core_v1_VolumeMount
func coreVolumeMount(common.ReferenceCallback) common.OpenAPIDefinition

//go:linkname resourceQuantity sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core.schema_apimachinery_pkg_api_resource_Quantity
func resourceQuantity(common.ReferenceCallback) common.OpenAPIDefinition
