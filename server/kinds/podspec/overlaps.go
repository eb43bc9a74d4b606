package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// file is a path that a volume writes, and where its content comes from.
type file struct{ path, source string }

func (f file) String() string {
	if f.source == "" {
		return fmt.Sprintf("%q", f.path)
	}
	return fmt.Sprintf("%q (%s)", f.path, f.source)
}

// paths warns of files that lie on or below one another in one volume.
func (a *adviser) paths(s *corev1.PodSpec) {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		switch {
		case v.ConfigMap != nil && v.ConfigMap.Items != nil:
			a.overlaps(keyFiles(v.ConfigMap.Items, ""), fmt.Sprintf("volume %q (ConfigMap %q): overlapping paths", v.Name, v.ConfigMap.Name))
		case v.Secret != nil && v.Secret.Items != nil:
			a.overlaps(keyFiles(v.Secret.Items, ""), fmt.Sprintf("volume %q (Secret %q): overlapping paths", v.Name, v.Secret.SecretName))
		case v.DownwardAPI != nil:
			a.overlaps(downwardFiles(v.DownwardAPI.Items, ""), fmt.Sprintf("volume %q (DownwardAPI): overlapping paths", v.Name))
		case v.Projected != nil:
			a.projectedPaths(v)
		}
	}
}

func (a *adviser) projectedPaths(v *corev1.Volume) {
	var files, of []file
	for i := range v.Projected.Sources {
		src := &v.Projected.Sources[i]
		// In 1.32 a source that does not name its files is taken to have those of the previous one: a stock
		// server warns of them again.
		if a.since133 {
			of = nil
		}
		switch {
		case *src == (corev1.VolumeProjection{}):
			a.add(fmt.Sprintf("volume %q (Projected) has no sources provided", v.Name))
			continue
		case src.ConfigMap != nil && src.ConfigMap.Items != nil:
			of = keyFiles(src.ConfigMap.Items, fmt.Sprintf("ConfigMap %q", src.ConfigMap.Name))
		case src.Secret != nil && src.Secret.Items != nil:
			of = keyFiles(src.Secret.Items, fmt.Sprintf("Secret %q", src.Secret.Name))
		case src.DownwardAPI != nil && src.DownwardAPI.Items != nil:
			of = downwardFiles(src.DownwardAPI.Items, "DownwardAPI")
		case src.ServiceAccountToken != nil:
			of = []file{{src.ServiceAccountToken.Path, "ServiceAccountToken"}}
		case src.ClusterTrustBundle != nil:
			of = []file{{src.ClusterTrustBundle.Path, fmt.Sprintf("ClusterTrustBundle %q", bundleName(src.ClusterTrustBundle))}}
		case src.PodCertificate != nil:
			cert := src.PodCertificate
			for _, f := range []file{{cert.CertificateChainPath, "PodCertificate chain"}, {cert.KeyPath, "PodCertificate key"}, {cert.CredentialBundlePath, "PodCertificate credential bundle"}} {
				if f.path != "" {
					of = append(of, f)
				}
			}
		}
		files = append(files, of...)
	}
	a.overlaps(files, fmt.Sprintf("volume %q (Projected): overlapping paths", v.Name))
}

// bundleName returns the name of bundles in a warning: their name, or else their signer.
func bundleName(b *corev1.ClusterTrustBundleProjection) string {
	for _, name := range []*string{b.Name, b.SignerName} {
		if name != nil {
			return *name
		}
	}
	return ""
}

func keyFiles(items []corev1.KeyToPath, source string) []file {
	var files []file
	for i := range items {
		files = append(files, file{items[i].Path, source})
	}
	return files
}

func downwardFiles(items []corev1.DownwardAPIVolumeFile, source string) []file {
	var files []file
	for i := range items {
		files = append(files, file{items[i].Path, source})
	}
	return files
}

// maxCompared bounds the pairwise comparisons, since a client chooses how much
// there is of it.
const maxCompared = 512

// overlaps compares each file with those before it.
func (a *adviser) overlaps(files []file, message string) {
	if len(files) > maxCompared {
		files = files[:maxCompared]
	}
	for i := range files {
		f := file{strings.TrimRight(files[i].path, "/"), files[i].source}
		files[i] = f
		if f.path == "" {
			continue
		}
		for _, earlier := range files[:i] {
			if len(a.out) == maxWarnings {
				return
			}
			if earlier.path != "" && (below(earlier.path, f.path) || below(f.path, earlier.path)) {
				a.add(fmt.Sprintf("%s: %s with %s", message, f, earlier))
			}
		}
	}
}

// below reports whether path is dir or lies in it.
func below(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/')
}
