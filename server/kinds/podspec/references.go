package podspec

import corev1 "k8s.io/api/core/v1"

// References are the names of objects that a pod uses, each as often as it does.
type References struct{ Secrets, ConfigMaps []string }

// ReferencesOf collects the references of a pod's images, environments and volumes.
func ReferencesOf(s *corev1.PodSpec) References {
	r := References{}
	for i := range s.ImagePullSecrets {
		r.secret(s.ImagePullSecrets[i].Name)
	}
	visitContainers(s, func(c *corev1.Container, _ where) { r.environment(c) })
	for i := range s.Volumes {
		r.volume(&s.Volumes[i].VolumeSource)
	}
	return r
}

func (r *References) secret(name string) {
	if name != "" {
		r.Secrets = append(r.Secrets, name)
	}
}

func (r *References) configMap(name string) {
	if name != "" {
		r.ConfigMaps = append(r.ConfigMaps, name)
	}
}

func (r *References) local(ref *corev1.LocalObjectReference) {
	if ref != nil {
		r.secret(ref.Name)
	}
}

func (r *References) environment(c *corev1.Container) {
	for i := range c.EnvFrom {
		if s := c.EnvFrom[i].SecretRef; s != nil {
			r.secret(s.Name)
		}
		if m := c.EnvFrom[i].ConfigMapRef; m != nil {
			r.configMap(m.Name)
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		if s := from.SecretKeyRef; s != nil {
			r.secret(s.Name)
		}
		if m := from.ConfigMapKeyRef; m != nil {
			r.configMap(m.Name)
		}
	}
}

func (r *References) volume(v *corev1.VolumeSource) {
	switch {
	case v.Secret != nil:
		r.secret(v.Secret.SecretName)
	case v.ConfigMap != nil:
		r.configMap(v.ConfigMap.Name)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.Secret != nil {
				r.secret(s.Secret.Name)
			}
			if s.ConfigMap != nil {
				r.configMap(s.ConfigMap.Name)
			}
		}
	case v.AzureFile != nil:
		r.secret(v.AzureFile.SecretName)
	case v.CephFS != nil:
		r.local(v.CephFS.SecretRef)
	case v.Cinder != nil:
		r.local(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		r.local(v.FlexVolume.SecretRef)
	case v.RBD != nil:
		r.local(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		r.local(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		r.local(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		r.local(v.StorageOS.SecretRef)
	case v.CSI != nil:
		r.local(v.CSI.NodePublishSecretRef)
	}
}
