package apiregistration

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoManaged is the label of APIServices that the server itself keeps.
const AutoManaged = "kube-aggregator.kubernetes.io/automanaged"

// OnStart is the value of AutoManaged where the server only writes at its start.
const OnStart = "onstart"

// Always is the value of AutoManaged if the server keeps the object up to date.
const Always = "true"

type priority struct{ group, version int32 }

// priorities place the built-in group versions in discovery.
var priorities = map[schema.GroupVersion]priority{
	{Group: "", Version: "v1"}:                                   {18000, 1},
	{Group: "apps", Version: "v1"}:                               {17800, 15},
	{Group: "events.k8s.io", Version: "v1"}:                      {17750, 15},
	{Group: "authentication.k8s.io", Version: "v1"}:              {17700, 15},
	{Group: "authorization.k8s.io", Version: "v1"}:               {17600, 15},
	{Group: "autoscaling", Version: "v2"}:                        {17500, 30},
	{Group: "autoscaling", Version: "v1"}:                        {17500, 15},
	{Group: "batch", Version: "v1"}:                              {17400, 15},
	{Group: "certificates.k8s.io", Version: "v1"}:                {17300, 15},
	{Group: "networking.k8s.io", Version: "v1"}:                  {17200, 15},
	{Group: "policy", Version: "v1"}:                             {17100, 15},
	{Group: "rbac.authorization.k8s.io", Version: "v1"}:          {17000, 15},
	{Group: "storage.k8s.io", Version: "v1"}:                     {16800, 15},
	{Group: "apiextensions.k8s.io", Version: "v1"}:               {16700, 15},
	{Group: "admissionregistration.k8s.io", Version: "v1"}:       {16700, 15},
	{Group: "scheduling.k8s.io", Version: "v1"}:                  {16600, 15},
	{Group: "coordination.k8s.io", Version: "v1"}:                {16500, 15},
	{Group: "node.k8s.io", Version: "v1"}:                        {16300, 15},
	{Group: "discovery.k8s.io", Version: "v1"}:                   {16200, 15},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}:       {16100, 21},
	{Group: "authentication.k8s.io", Version: "v1beta1"}:         {17700, 9},
	{Group: "certificates.k8s.io", Version: "v1alpha1"}:          {17300, 1},
	{Group: "networking.k8s.io", Version: "v1beta1"}:             {17200, 9},
	{Group: "storage.k8s.io", Version: "v1beta1"}:                {16800, 9},
	{Group: "storage.k8s.io", Version: "v1alpha1"}:               {16800, 1},
	{Group: "admissionregistration.k8s.io", Version: "v1beta1"}:  {16700, 12},
	{Group: "admissionregistration.k8s.io", Version: "v1alpha1"}: {16700, 9},
	{Group: "coordination.k8s.io", Version: "v1alpha2"}:          {16500, 12},
	{Group: "internal.apiserver.k8s.io", Version: "v1alpha1"}:    {16000, 9},
	{Group: "resource.k8s.io", Version: "v1beta1"}:               {16200, 9},
	{Group: "resource.k8s.io", Version: "v1alpha3"}:              {16200, 1},
	{Group: "storagemigration.k8s.io", Version: "v1alpha1"}:      {15800, 9},
	{Group: "certificates.k8s.io", Version: "v1beta1"}:           {17300, 9},
	{Group: "scheduling.k8s.io", Version: "v1alpha2"}:            {16600, 2},
	{Group: "coordination.k8s.io", Version: "v1beta1"}:           {16500, 13},
	{Group: "resource.k8s.io", Version: "v1"}:                    {16200, 21},
	{Group: "resource.k8s.io", Version: "v1beta2"}:               {16200, 15},
	{Group: "storagemigration.k8s.io", Version: "v1beta1"}:       {15800, 9},
}

// Local returns the APIService of a built-in group version, or nil if it has none.
func Local(gv schema.GroupVersion) *apiregistrationv1.APIService {
	p, ok := priorities[gv]
	if !ok {
		return nil
	}
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group, Labels: map[string]string{AutoManaged: OnStart}},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: p.group, VersionPriority: p.version,
		},
	}
}

// OfDefinition returns the APIService of a group version of custom resources.
func OfDefinition(gv schema.GroupVersion) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: gv.Version + "." + gv.Group, Labels: map[string]string{AutoManaged: Always}},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: 1000, VersionPriority: 100,
		},
	}
}
