package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	accessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod}
	volumeModes = []corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}
)

// ClaimOptions relax rules for claims that were stored before a rule existed.
type ClaimOptions struct {
	AllowInvalidLabelValueInSelector bool
	AllowInvalidDataSourceGroup      bool
	AttributesClass                  bool // claims may name a class of attributes
}

// ValidateClaimSpec checks the spec of a claim, or of the template of one.
func ValidateClaimSpec(s *corev1.PersistentVolumeClaimSpec, p *field.Path, o ClaimOptions) field.ErrorList {
	var c checker
	c.requiredIf(len(s.AccessModes) == 0, p, "accessModes", "at least 1 access mode is required")
	c.selector(s.Selector, o.AllowInvalidLabelValueInSelector, p, "selector")
	c.accessModes(s.AccessModes, p)
	c.storageRequest(s, p.Child("resources").Key(string(corev1.ResourceStorage)))
	if s.StorageClassName != nil && *s.StorageClassName != "" {
		c.objectName(p, "storageClassName", *s.StorageClassName)
	}
	if s.VolumeMode != nil {
		oneOf(&c, p, "volumeMode", *s.VolumeMode, volumeModes)
	}
	if class := s.VolumeAttributesClassName; o.AttributesClass && class != nil && *class != "" {
		c.objectName(p, "volumeAttributesClassName", *class)
	}
	c.dataSources(s, p, o)
	return c.errs
}

// ValidateAccessModes checks the access modes of a volume or claim. p is the path of the spec.
func ValidateAccessModes(modes []corev1.PersistentVolumeAccessMode, p *field.Path) field.ErrorList {
	var c checker
	c.accessModes(modes, p)
	return c.errs
}

func (c *checker) accessModes(modes []corev1.PersistentVolumeAccessMode, p *field.Path) {
	once, other := false, false
	for _, m := range modes {
		if !oneOf(c, p, "accessModes", m, accessModes) {
			continue
		}
		once = once || m == corev1.ReadWriteOncePod
		other = other || m != corev1.ReadWriteOncePod
	}
	c.forbiddenIf(once && other, p, "accessModes", "may not use ReadWriteOncePod with other access modes")
}

func (c *checker) storageRequest(s *corev1.PersistentVolumeClaimSpec, p *field.Path) {
	q, ok := s.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		c.required(p, "")
	} else if q.Cmp(resource.Quantity{}) <= 0 {
		c.invalid(p, q.String(), notPositive)
	}
}

func (c *checker) dataSources(s *corev1.PersistentVolumeClaimSpec, p *field.Path, o ClaimOptions) {
	if d := s.DataSource; d != nil {
		c.dataSource(d.APIGroup, d.Kind, d.Name, p.Child("dataSource"), o)
	}
	ref := s.DataSourceRef
	if ref == nil {
		return
	}
	c.dataSource(ref.APIGroup, ref.Kind, ref.Name, p.Child("dataSourceRef"), o)
	elsewhere := ref.Namespace != nil && *ref.Namespace != ""
	if elsewhere {
		c.messages(p.Child("dataSourceRef").Child("namespace"), *ref.Namespace, validation.ValidateNamespaceName(*ref.Namespace, false))
	}
	switch d := s.DataSource; {
	case d == nil:
	case elsewhere:
		c.invalid(p, p.Child("dataSource"), "may not be specified when dataSourceRef.namespace is specified")
	case d.Kind != ref.Kind || d.Name != ref.Name || !rules.Same(d.APIGroup, ref.APIGroup):
		c.invalid(p, p.Child("dataSource"), "must match dataSourceRef")
	}
}

func (c *checker) dataSource(group *string, kind, name string, p *field.Path, o ClaimOptions) {
	c.requiredIf(name == "", p, "name", "")
	c.requiredIf(kind == "", p, "kind", "")
	switch {
	case group == nil || *group == "":
		invalidIf(c, kind != "PersistentVolumeClaim", p, "", kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
	case !o.AllowInvalidDataSourceGroup:
		c.dnsSubdomain(p, "apiGroup", *group)
	}
}

// ephemeralVolume checks a volume for which a claim is created. p is that of the volume.
func (c *checker) ephemeralVolume(v *corev1.Volume, p *field.Path) {
	t, at := v.Ephemeral.VolumeClaimTemplate, p.Child("ephemeral").Child("volumeClaimTemplate")
	if t == nil {
		c.required(at, "")
	} else {
		c.claimMeta(&t.ObjectMeta, at.Child("metadata"))
		c.add(ValidateClaimSpec(&t.Spec, at.Child("spec"), ClaimOptions{AttributesClass: c.o.AttributesClass})...)
	}
	if c.o.PodName == "" || v.Name == "" {
		return
	}
	claim := c.o.PodName + "-" + v.Name
	for _, m := range validation.NameIsDNSSubdomain(claim, false) {
		c.invalid(p.Child("name"), v.Name, "PVC name \""+claim+"\": "+m)
	}
}

// ValidateTemplateMeta checks the metadata of a template whose objects take labels and annotations
// from it, and nothing else.
func ValidateTemplateMeta(m *metav1.ObjectMeta, p *field.Path) field.ErrorList {
	c := checker{}
	c.claimMeta(m, p)
	return c.errs
}

// claimMeta allows labels and annotations: nothing else of the template is used.
func (c *checker) claimMeta(m *metav1.ObjectMeta, p *field.Path) {
	c.annotations(m.Annotations, p.Child("annotations"))
	c.labels(p, "labels", m.Labels)
	c.forbidSet(p, "cannot be set", []setField{
		{m.Name != "", "name"}, {m.GenerateName != "", "generateName"}, {m.Namespace != "", "namespace"},
		{m.SelfLink != "", "selfLink"}, {m.UID != "", "uID"}, {m.ResourceVersion != "", "resourceVersion"},
		{m.Generation != 0, "generation"}, {m.CreationTimestamp != (metav1.Time{}), "creationTimestamp"},
		{m.DeletionTimestamp != nil, "deletionTimestamp"}, {m.DeletionGracePeriodSeconds != nil, "deletionGracePeriodSeconds"},
		{m.OwnerReferences != nil, "ownerReferences"}, {m.Finalizers != nil, "finalizers"}, {m.ManagedFields != nil, "managedFields"},
	})
}

// claimNames are the names of a pod's claims.
type claimNames struct {
	names []string
	set   nameSet
	text  string // all of them, once it is needed
}

func (n *claimNames) has(name string) bool { return n != nil && n.set.has(name) }

// detail describes a valid name. All errors of a pod share the text, which is as long as the list.
func (n *claimNames) detail() string {
	const one = "must be one of the names in pod.spec.resourceClaims"
	if n == nil || len(n.names) == 0 {
		return one + " which is empty"
	}
	if n.text == "" {
		n.text = one + ": " + strings.Join(slices.Sorted(slices.Values(n.names)), ", ")
	}
	return n.text
}

func (c *checker) podClaims(list []corev1.PodResourceClaim, p *field.Path) *claimNames {
	names := &claimNames{}
	for i := range list {
		claim, at := &list[i], p.Index(i)
		switch {
		case claim.Name == "":
			c.required(at.Child("name"), "")
		case names.has(claim.Name):
			c.duplicate(at.Child("name"), claim.Name)
		default:
			c.dnsLabel(at, "name", claim.Name)
			names.names = append(names.names, claim.Name)
			names.set.add(claim.Name)
		}
		if claim.ResourceClaimName != nil && claim.ResourceClaimTemplateName != nil {
			c.invalid(at, rules.Shown(*claim), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
		}
		if claim.ResourceClaimName == nil && claim.ResourceClaimTemplateName == nil {
			c.invalid(at, rules.Shown(*claim), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
		if claim.ResourceClaimName != nil {
			c.objectName(at, "resourceClaimName", *claim.ResourceClaimName)
		}
		if claim.ResourceClaimTemplateName != nil {
			c.objectName(at, "resourceClaimTemplateName", *claim.ResourceClaimTemplateName)
		}
	}
	return names
}
