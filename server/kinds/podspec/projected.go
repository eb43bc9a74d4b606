package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// downwardFile checks a file that shows a field of the pod. Its errors name the
// volume, not the file.
func (c *checker) downwardFile(f *corev1.DownwardAPIVolumeFile, p *field.Path) {
	c.requiredIf(f.Path == "", p, "path", "")
	c.localPath(p, "path", f.Path)
	switch {
	case f.FieldRef != nil:
		c.fieldRef(f.FieldRef, fileFields, p.Child("fieldRef"))
		invalidIf(c, f.ResourceFieldRef != nil, p, "", "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
	case f.ResourceFieldRef != nil:
		c.resourceFieldRef(f.ResourceFieldRef, true, p.Child("resourceFieldRef"))
	default:
		c.required(p, "one of fieldRef and resourceFieldRef is required")
	}
	c.fileMode(f.Mode, p, "", "mode")
}

// projected checks a volume of several sources, whose files must not collide.
func (c *checker) projected(v *corev1.ProjectedVolumeSource, p *field.Path) {
	c.fileMode(v.DefaultMode, p, "", "defaultMode")
	var paths nameSet
	taken := func(path string, value any) {
		if path == "" {
			return
		}
		invalidIf(c, paths.has(path), p, "", value, "conflicting duplicate paths")
		paths.add(path)
	}
	for i := range v.Sources {
		src, at, n := &v.Sources[i], p.Child("sources").Index(i), 0
		if src.Secret != nil {
			n++
			c.projectedKeys(src.Secret.Name, src.Secret.Items, at.Child("secret"), taken)
		}
		if src.ConfigMap != nil {
			n++
			c.projectedKeys(src.ConfigMap.Name, src.ConfigMap.Items, at.Child("configMap"), taken)
		}
		if src.DownwardAPI != nil {
			n++
			for j := range src.DownwardAPI.Items {
				f := &src.DownwardAPI.Items[j]
				c.downwardFile(f, at.Child("downwardAPI"))
				taken(f.Path, f.Path)
			}
		}
		if src.ServiceAccountToken != nil {
			n++
			c.projectedToken(src.ServiceAccountToken, p, at.Child("serviceAccountToken"))
		}
		if src.ClusterTrustBundle != nil {
			n++
			c.projectedBundle(src.ClusterTrustBundle, at.Child("clusterTrustBundle"))
			if path := src.ClusterTrustBundle.Path; paths.has(path) { // an empty one too
				c.invalid(p, path, "conflicting duplicate paths")
			} else {
				paths.add(path)
			}
		}
		if src.PodCertificate != nil {
			n++
			c.projectedCertificate(src.PodCertificate, p, at.Child("podCertificate"), &paths)
		}
		c.forbiddenIf(n > 1, at, "", "may not specify more than 1 volume type per source")
	}
}

func (c *checker) projectedKeys(name string, items []corev1.KeyToPath, p *field.Path, taken func(string, any)) {
	c.requiredIf(name == "", p, "name", "")
	for i := range items {
		c.keyToPath(&items[i], p.Child("items").Index(i))
		taken(items[i].Path, name)
	}
}

// projectedToken reports a bad path at the volume, other mistakes at the source.
func (c *checker) projectedToken(t *corev1.ServiceAccountTokenProjection, volume, p *field.Path) {
	if s := t.ExpirationSeconds; s != nil {
		invalidIf(c, *s < 10*60, p, "expirationSeconds", s, "may not specify a duration less than 10 minutes")
		invalidIf(c, *s > 1<<32, p, "expirationSeconds", s, "may not specify a duration larger than 2^32 seconds")
	}
	if t.Path == "" {
		c.required(volume.Child("path"), "")
	} else if !c.o.AllowNonLocalProjectedTokenPath {
		c.localPath(volume, "path", t.Path)
	}
}

// projectedBundle checks the projected trust anchors: those of one ClusterTrustBundle, or of all of a signer
// that a selector selects.
func (c *checker) projectedBundle(b *corev1.ClusterTrustBundleProjection, p *field.Path) {
	switch {
	case b.Name != nil && b.SignerName != nil:
		c.invalid(p, rules.Shown(b), "only one of name and signerName may be used")
	case b.Name != nil:
		c.requiredIf(*b.Name == "", p, "name", "must be a valid object name")
		signer := ""
		if i := strings.LastIndexByte(*b.Name, ':'); i >= 0 {
			signer = strings.ReplaceAll((*b.Name)[:i], ":", "/")
		}
		for _, m := range rules.TrustBundleName(signer, *b.Name, false) {
			c.invalid(p.Child("name"), *b.Name, "not a valid clustertrustbundlename: "+m)
		}
		if b.LabelSelector != nil {
			c.invalid(p.Child("labelSelector"), rules.Shown(b.LabelSelector), "labelSelector must be unset if name is specified")
		}
	case b.SignerName != nil:
		c.requiredIf(*b.SignerName == "", p, "signerName", "must be a valid signer name")
		c.add(rules.SignerName(*b.SignerName, p.Child("signerName"))...)
		c.selector(b.LabelSelector, false, p, "labelSelector")
	default:
		c.required(p, "either name or signerName must be specified")
	}
	c.requiredIf(b.Path == "", p, "path", "")
	c.localPath(p, "path", b.Path)
}

// keyTypes are the key types for the certificate of a pod.
var keyTypes = []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}

const (
	shortestCertificate = 60 * 60
	longestCertificate  = 91 * 24 * 60 * 60
	longestOfKubernetes = 24 * 60 * 60 // from the signers of Kubernetes itself
)

// projectedCertificate checks a certificate for the pod and the files that it is written to. volume is the
// path of the volume, where files that collide are reported.
func (c *checker) projectedCertificate(cert *corev1.PodCertificateProjection, volume, p *field.Path, paths *nameSet) {
	c.add(rules.SignerName(cert.SignerName, p.Child("signerName"))...)
	c.userAnnotations(cert.UserAnnotations, p.Child("userAnnotations"))
	if !slices.Contains(keyTypes, cert.KeyType) {
		c.add(field.NotSupported(p.Child("keyType"), cert.KeyType, keyTypes))
	}
	if s := cert.MaxExpirationSeconds; s != nil {
		longest := int32(longestCertificate)
		if domain, _, _ := strings.Cut(cert.SignerName, "/"); domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			longest = longestOfKubernetes
		}
		invalidIf(c, *s < shortestCertificate, p, "maxExpirationSeconds", *s, "if provided, maxExpirationSeconds must be >= 3600")
		invalidIf(c, *s > longest, p, "maxExpirationSeconds", *s, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", longest))
	}
	n := 0
	for _, file := range [...]struct{ name, path string }{
		{"credentialBundlePath", cert.CredentialBundlePath}, {"keyPath", cert.KeyPath}, {"certificateChainPath", cert.CertificateChainPath},
	} {
		if file.path == "" {
			continue
		}
		n++
		c.localPath(p, file.name, file.path)
		if paths.has(file.path) {
			c.invalid(volume, file.path, "conflicting duplicate paths")
		}
		paths.add(file.path)
	}
	c.requiredIf(n == 0, p, "", "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
}

// userAnnotations checks a pod's annotations for the signer of its certificate.
func (c *checker) userAnnotations(annotations map[string]string, p *field.Path) {
	size := 0
	for _, k := range sortedKeys(annotations) {
		size += len(k) + len(annotations[k])
		c.add(utilvalidation.IsDomainPrefixedKey(p, strings.ToLower(k))...)
	}
	if size > validation.TotalAnnotationSizeLimitB {
		c.add(field.TooLong(p, "", validation.TotalAnnotationSizeLimitB))
	}
}
