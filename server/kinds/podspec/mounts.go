package podspec

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	propagations = []corev1.MountPropagationMode{corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone}
	readOnlys    = []corev1.RecursiveReadOnlyMode{corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible}
)

// mounts checks the mounts of a container. Some paths of errors lack the index: p, the path of the list, is
// used where a stock server uses it.
func (c *checker) mounts(ctr *corev1.Container, volumes volumeSet, p *field.Path) {
	var points nameSet
	var devices, paths nameSet
	for i := range ctr.VolumeDevices {
		devices.add(ctr.VolumeDevices[i].Name)
		paths.add(ctr.VolumeDevices[i].DevicePath)
	}
	for i := range ctr.VolumeMounts {
		m := &ctr.VolumeMounts[i]
		if m.Name == "" {
			c.required(p.Index(i).Child("name"), "")
		}
		if volumes.find(m.Name) == nil {
			c.add(field.NotFound(p.Index(i).Child("name"), m.Name))
		}
		if m.MountPath == "" {
			c.required(p.Index(i).Child("mountPath"), "")
		}
		if points.has(m.MountPath) {
			c.invalid(p.Index(i).Child("mountPath"), m.MountPath, "must be unique")
		}
		points.add(m.MountPath)
		if devices.has(m.Name) {
			c.invalid(p.Index(i).Child("name"), m.Name, "must not already exist in volumeDevices")
		}
		if paths.has(m.MountPath) {
			c.invalid(p.Index(i).Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices")
		}
		c.subPaths(m, volumes, p, i)
		if m.MountPropagation != nil {
			c.propagation(*m.MountPropagation, ctr, p.Child("mountPropagation"))
		}
		if m.RecursiveReadOnly != nil {
			c.recursiveReadOnly(m, p.Child("recursiveReadOnly"))
		}
	}
}

func (c *checker) subPaths(m *corev1.VolumeMount, volumes volumeSet, p *field.Path, i int) {
	if m.SubPath == "" && m.SubPathExpr == "" {
		return
	}
	if v := volumes.find(m.Name); v != nil && v.Image != nil && !c.o.Since133 {
		if m.SubPath != "" {
			c.invalid(p.Index(i).Child("subPath"), m.SubPath, "not allowed in image volume sources")
		}
		if m.SubPathExpr != "" {
			c.invalid(p.Index(i).Child("subPathExpr"), m.SubPathExpr, "not allowed in image volume sources")
		}
	}
	if m.SubPath != "" {
		c.descending(p, "subPath", m.SubPath)
	}
	if m.SubPathExpr != "" {
		if m.SubPath != "" {
			c.invalid(p.Index(i).Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
		}
		c.descending(p, "subPathExpr", m.SubPathExpr)
	}
}

func (c *checker) propagation(mode corev1.MountPropagationMode, ctr *corev1.Container, p *field.Path) {
	oneOf(c, p, "", mode, propagations)
	privileged := ctr.SecurityContext != nil && ctr.SecurityContext.Privileged != nil && *ctr.SecurityContext.Privileged
	c.forbiddenIf(mode == corev1.MountPropagationBidirectional && !privileged, p, "", "Bidirectional mount propagation is available only to privileged containers")
}

func (c *checker) recursiveReadOnly(m *corev1.VolumeMount, p *field.Path) {
	switch *m.RecursiveReadOnly {
	case corev1.RecursiveReadOnlyDisabled:
	case corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible:
		c.forbiddenIf(!m.ReadOnly, p, "", "may only be specified when readOnly is true")
		c.forbiddenIf(m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone, p, "", "may only be specified when mountPropagation is None or not specified")
	default:
		c.add(field.NotSupported(p, *m.RecursiveReadOnly, readOnlys))
	}
}

// devices checks the block devices of a container.
func (c *checker) devices(ctr *corev1.Container, volumes volumeSet, p *field.Path) {
	if len(ctr.VolumeDevices) == 0 {
		return
	}
	var names, paths, mounts, points nameSet
	for i := range ctr.VolumeMounts {
		mounts.add(ctr.VolumeMounts[i].Name)
		points.add(ctr.VolumeMounts[i].MountPath)
	}
	for i := range ctr.VolumeDevices {
		d, at := &ctr.VolumeDevices[i], p.Index(i)
		v := volumes.find(d.Name)
		c.requiredIf(d.Name == "", at, "name", "")
		invalidIf(c, names.has(d.Name), at, "name", d.Name, "must be unique")
		if v == nil {
			c.add(field.NotFound(at.Child("name"), d.Name))
		} else if v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
			c.invalid(at.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		c.requiredIf(d.DevicePath == "", at, "devicePath", "")
		invalidIf(c, paths.has(d.DevicePath), at, "devicePath", d.DevicePath, "must be unique")
		if hasBackstep(d.DevicePath) {
			c.invalid(at.Child("devicePath"), d.DevicePath, "can not contain backsteps ('..')")
		} else {
			paths.add(d.DevicePath)
		}
		invalidIf(c, mounts.has(d.Name), at, "name", d.Name, "must not already exist in volumeMounts")
		invalidIf(c, points.has(d.DevicePath), at, "devicePath", d.DevicePath, "must not already exist as a path in volumeMounts")
		if d.Name != "" {
			names.add(d.Name)
		}
	}
}

func hasBackstep(s string) bool {
	for s != "" {
		part, rest, _ := strings.Cut(s, "/")
		if part == ".." {
			return true
		}
		s = rest
	}
	return false
}

// descending checks a path that must stay below its start.
func (c *checker) descending(p *field.Path, child, s string) {
	if path.IsAbs(s) {
		c.invalid(at(p, child), s, "must be a relative path")
	}
	c.noBacksteps(p, child, s)
}

func (c *checker) noBacksteps(p *field.Path, child, s string) {
	if hasBackstep(s) {
		c.invalid(at(p, child), s, "must not contain '..'")
	}
}

// localPathProblems returns why s cannot name a file that a volume writes. Names
// that begin with two dots are the volume's own.
func localPathProblems(s string) []string {
	var msgs []string
	if path.IsAbs(s) {
		msgs = append(msgs, "must be a relative path")
	}
	if hasBackstep(s) {
		msgs = append(msgs, "must not contain '..'")
	}
	if strings.HasPrefix(s, "..") && !strings.HasPrefix(s, "../") {
		msgs = append(msgs, "must not start with '..'")
	}
	return msgs
}

func (c *checker) localPath(p *field.Path, child, s string) {
	if msgs := localPathProblems(s); len(msgs) > 0 {
		c.messages(at(p, child), s, msgs)
	}
}
