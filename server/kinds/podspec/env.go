package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *checker) env(vars []corev1.EnvVar, p *field.Path) {
	for i := range vars {
		v := &vars[i]
		if v.Name == "" {
			c.required(p.Index(i).Child("name"), "")
		} else if msgs := c.envName(v.Name); len(msgs) > 0 {
			c.messages(p.Index(i).Child("name"), v.Name, msgs)
		}
		if v.ValueFrom != nil {
			c.valueFrom(v, p.Index(i).Child("valueFrom"))
		}
	}
}

// envName returns why the name or prefix of a variable is invalid.
func (c *checker) envName(name string) []string {
	if c.o.AllowLooseEnv {
		return utilvalidation.IsRelaxedEnvVarName(name)
	}
	return utilvalidation.IsEnvVarName(name)
}

func (c *checker) valueFrom(v *corev1.EnvVar, p *field.Path) {
	from, n := v.ValueFrom, 0
	if from.FieldRef != nil {
		n++
		c.fieldRef(from.FieldRef, envFields, p.Child("fieldRef"))
	}
	if from.ResourceFieldRef != nil {
		n++
		c.resourceFieldRef(from.ResourceFieldRef, false, p.Child("resourceFieldRef"))
	}
	if from.ConfigMapKeyRef != nil {
		n++
		c.keyRef(from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, p.Child("configMapKeyRef"))
	}
	if from.SecretKeyRef != nil {
		n++
		c.keyRef(from.SecretKeyRef.Name, from.SecretKeyRef.Key, p.Child("secretKeyRef"))
	}
	if from.FileKeyRef != nil {
		n++
		c.fileKeyRef(from.FileKeyRef, p.Child("fileKeyRef"))
	}
	switch {
	case n == 0 && c.o.AllowEnvFiles:
		c.invalid(p, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case n == 0:
		c.invalid(p, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`")
	case v.Value != "":
		c.invalid(p, "", "may not be specified when `value` is not empty")
	case n > 1:
		c.invalid(p, "", "may not have more than one field specified at a time")
	}
}

func (c *checker) keyRef(name, key string, p *field.Path) {
	c.objectName(p, "name", name)
	if key == "" {
		c.required(p.Child("key"), "")
		return
	}
	if faults := DataKeyFaults(key); faults != nil {
		c.messages(p.Child("key"), key, faults)
	}
}

// fileKeyRef checks a reference to a variable in a file of a volume.
func (c *checker) fileKeyRef(r *corev1.FileKeySelector, p *field.Path) {
	if r.Key == "" {
		c.required(p.Child("key"), "")
	} else {
		c.messages(p.Child("key"), r.Key, utilvalidation.IsRelaxedEnvVarName(r.Key))
	}
	c.requiredThen(r.VolumeName, p, "volumeName", c.dnsLabel)
	c.requiredThen(r.Path, p, "path", c.noBacksteps)
}

// envFileVolumes checks that files of variables are in volumes that containers write.
func (c *checker) envFileVolumes(s *corev1.PodSpec, p *field.Path) {
	var volumes map[string]*corev1.Volume
	visitContainers(s, func(ctr *corev1.Container, w where) {
		for i := range ctr.Env {
			from := ctr.Env[i].ValueFrom
			if from == nil || from.FileKeyRef == nil {
				continue
			}
			if volumes == nil {
				volumes = make(map[string]*corev1.Volume, len(s.Volumes))
				for i := range s.Volumes {
					volumes[s.Volumes[i].Name] = &s.Volumes[i]
				}
			}
			name := from.FileKeyRef.VolumeName
			at := w.path(p).Child("env").Index(i).Child("valueFrom").Child("fileKeyRef").Child("volumeName")
			if v := volumes[name]; v == nil {
				c.add(field.NotFound(at, name))
			} else if v.EmptyDir == nil {
				c.invalid(at, name, "referenced volume must be of type emptyDir")
			}
		}
	})
}

func (c *checker) envFrom(vars []corev1.EnvFromSource, p *field.Path) {
	for i := range vars {
		v, path := &vars[i], p.Index(i)
		if v.Prefix != "" {
			c.messages(path.Child("prefix"), v.Prefix, c.envName(v.Prefix))
		}
		n := 0
		if v.ConfigMapRef != nil {
			n++
			c.envSource(v.ConfigMapRef.Name, path.Child("configMapRef"))
		}
		if v.SecretRef != nil {
			n++
			c.envSource(v.SecretRef.Name, path.Child("secretRef"))
		}
		if n == 0 {
			c.invalid(p, "", "must specify one of: `configMapRef` or `secretRef`")
		} else if n > 1 {
			c.invalid(p, "", "may not have more than one field specified at a time")
		}
	}
}

func (c *checker) envSource(name string, p *field.Path) {
	if name == "" {
		c.required(p.Child("name"), "")
		return
	}
	c.objectNamePrefix(p, "name", name)
}

// Fields of a pod that its containers may read, in the order of messages.
var (
	envFields = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	fileFields      = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
	knownFields     = append([]string{"metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"}, envFields...)
	resourceFields  = []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"}
	hugePagesFields = []string{"limits.hugepages-", "requests.hugepages-"}
)

// subscript splits metadata.labels['key'] into path and key.
func subscript(s string) (path, key string, ok bool) {
	if !strings.HasSuffix(s, "']") {
		return s, "", false
	}
	s = s[:len(s)-2]
	i := strings.Index(s, "['")
	if i <= 0 {
		return s + "']", "", false
	}
	return s[:i], s[i+2:], true
}

func (c *checker) fieldRef(r *corev1.ObjectFieldSelector, allowed []string, p *field.Path) {
	switch {
	case r.APIVersion == "":
		c.required(p.Child("apiVersion"), "")
		return
	case r.FieldPath == "":
		c.required(p.Child("fieldPath"), "")
		return
	case r.APIVersion != "v1":
		c.fieldPathError(r, p, "unsupported pod version: "+r.APIVersion)
		return
	}
	if path, key, ok := subscript(r.FieldPath); ok {
		switch path {
		case "metadata.annotations":
			c.qualifiedName(p, "", strings.ToLower(key))
		case "metadata.labels":
			c.qualifiedName(p, "", key)
		default:
			c.fieldPathError(r, p, "field label does not support subscript: "+r.FieldPath)
		}
		return
	}
	path := r.FieldPath
	if path == "spec.host" {
		path = "spec.nodeName"
	}
	if !slices.Contains(knownFields, path) {
		c.fieldPathError(r, p, "field label not supported: "+path)
		return
	}
	if !slices.Contains(allowed, path) {
		c.add(field.NotSupported(p.Child("fieldPath"), path, allowed))
	}
}

func (c *checker) fieldPathError(r *corev1.ObjectFieldSelector, p *field.Path, problem string) {
	c.invalid(p.Child("fieldPath"), r.FieldPath, "error converting fieldPath: "+problem)
}

func isHugePagesField(s string) bool {
	return strings.HasPrefix(s, hugePagesFields[0]) || strings.HasPrefix(s, hugePagesFields[1])
}

// resourceFieldRef checks a reference to a request or limit; in a volume it has
// to name the container.
func (c *checker) resourceFieldRef(r *corev1.ResourceFieldSelector, volume bool, p *field.Path) {
	switch {
	case volume && r.ContainerName == "":
		c.required(p.Child("containerName"), "")
	case r.Resource == "":
		c.required(p.Child("resource"), "")
	case !slices.Contains(resourceFields, r.Resource) && !isHugePagesField(r.Resource):
		c.add(field.NotSupported(p.Child("resource"), r.Resource, resourceFields))
	}
	if !r.Divisor.IsZero() {
		c.divisor(r, p)
	}
}

var byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}

func (c *checker) divisor(r *corev1.ResourceFieldSelector, p *field.Path) {
	allowed, kind := byteDivisors, ""
	switch r.Resource {
	case "limits.cpu", "requests.cpu":
		allowed, kind = []string{"1m", "1"}, "cpu"
	case "limits.memory", "requests.memory":
		kind = "memory"
	case "limits.ephemeral-storage", "requests.ephemeral-storage":
		kind = "local ephemeral storage"
	default:
		if isHugePagesField(r.Resource) {
			kind = "hugepages"
		}
	}
	if kind == "" || slices.Contains(allowed, r.Divisor.String()) {
		return
	}
	list := strings.Join(allowed, ", ")
	if kind == "cpu" {
		list = "1m and 1"
	}
	c.invalid(p.Child("divisor"), r.Resource, fmt.Sprintf("only divisor's values %s are supported with the %s resource", list, kind))
}
