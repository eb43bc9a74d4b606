// Package pods holds the admission plugins that complete pods: the service account
// and its token, priority, tolerations and the runtime class.
package pods

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/rowlock/rowlock/server/admission"
)

// Where a pod finds the token of its service account, and in which volume.
const (
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenVolume = "kube-api-access-"
	tokenLife   = 3607 // a little more than an hour: kubelets recognize the default by this number
	rootCA      = "kube-root-ca.crt"

	defaultAccount = "default"
	accountTries   = 10
	accountWait    = 50 * time.Millisecond

	enforceSecrets = "kubernetes.io/enforce-mountable-secrets"
	mirror         = corev1.MirrorPodAnnotationKey
)

// ServiceAccount names the default account where a pod names none, refuses pods
// whose account does not exist, and gives containers their token.
type ServiceAccount struct {
	admission.CreatesAndUpdates
	Objects admission.Objects
}

var (
	_ admission.Mutator   = ServiceAccount{}
	_ admission.Validator = ServiceAccount{}
)

// Name implements admission.Plugin.
func (ServiceAccount) Name() string { return "ServiceAccount" }

// Admit implements admission.Mutator.
func (p ServiceAccount) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || a.Operation != admission.Create || !a.Is("", "pods", "") {
		return nil
	}
	if _, isMirror := pod.Annotations[mirror]; isMirror {
		return mirrorPod(a, pod)
	}
	pod.Spec.ServiceAccountName = cmp.Or(pod.Spec.ServiceAccountName, defaultAccount)
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := p.accountOf(ctx, a, pod)
	if err != nil {
		return err
	}
	if err := onlyKnownSecrets(account, pod); err != nil {
		return a.Forbid(err)
	}
	if wantsToken(account, pod) {
		mountToken(&pod.Spec)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, account.ImagePullSecrets...)
	}
	return nil
}

// Validate implements admission.Validator: other plugins and webhooks may have changed a new pod since, and ephemeral
// containers are added later.
func (p ServiceAccount) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	created := a.Operation == admission.Create && a.Is("", "pods", "")
	if !ok || !created && !a.Is("", "pods", "ephemeralcontainers") {
		return nil
	}
	if _, isMirror := pod.Annotations[mirror]; created && isMirror {
		return mirrorPod(a, pod)
	}
	if pod.Spec.ServiceAccountName == "" {
		return a.Forbid(fmt.Errorf("no service account specified for pod %s/%s", a.Namespace, pod.Name))
	}
	account, err := p.accountOf(ctx, a, pod)
	switch {
	case err != nil:
		return err
	case created:
		err = onlyKnownSecrets(account, pod)
	case enforces(account):
		known := mountable(account)
		for _, c := range pod.Spec.EphemeralContainers {
			if err = onlyKnownEnv("ephemeral container", c.Name, c.Env, c.EnvFrom, known, account); err != nil {
				break
			}
		}
	}
	if err != nil {
		return a.Forbid(err)
	}
	return nil
}

// accountOf finds the account that a pod names, which must exist.
func (p ServiceAccount) accountOf(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	name := pod.Spec.ServiceAccountName
	account, err := p.account(ctx, a.Namespace, name)
	if err == nil && account == nil {
		why := fmt.Sprintf("serviceaccount %q not found", name)
		if faults := path.IsValidPathSegmentName(name); len(faults) > 0 {
			why = fmt.Sprintf("invalid resource name %q: %v", name, faults)
		}
		err = a.Forbid(fmt.Errorf("error looking up service account %s/%s: %s", a.Namespace, name, why))
	}
	return account, err
}

// enforces reports whether pods of an account may use its own secrets alone.
func enforces(account *corev1.ServiceAccount) bool {
	yes, err := strconv.ParseBool(account.Annotations[enforceSecrets])
	return yes && err == nil
}

// account finds a service account. It waits briefly for the default one of a new namespace.
func (p ServiceAccount) account(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	for try := 1; ; try++ {
		obj, err := p.Objects.Get(ctx, "serviceaccounts", namespace, name)
		if account, ok := obj.(*corev1.ServiceAccount); ok || err != nil {
			return account, err
		}
		if name != defaultAccount || try == accountTries {
			return nil, nil
		}
		select {
		case <-time.After(accountWait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// mirrorPod refuses a mirror pod that uses API objects: a static pod of a kubelet has none.
func mirrorPod(a *admission.Attributes, pod *corev1.Pod) error {
	if pod.Spec.ServiceAccountName != "" {
		return a.Forbid(fmt.Errorf("a mirror pod may not reference service accounts"))
	}
	for _, v := range pod.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				return a.Forbid(fmt.Errorf("a mirror pod may not use ServiceAccountToken volume projections"))
			}
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			return a.Forbid(fmt.Errorf("a mirror pod may not reference secrets"))
		}
	}
	return nil
}

func wantsToken(account *corev1.ServiceAccount, pod *corev1.Pod) bool {
	if m := pod.Spec.AutomountServiceAccountToken; m != nil {
		return *m
	}
	if m := account.AutomountServiceAccountToken; m != nil {
		return *m
	}
	return true
}

// mountToken adds the token's volume to every container that has nothing at its path.
func mountToken(spec *corev1.PodSpec) {
	name, there := "", false
	for _, v := range spec.Volumes {
		if strings.HasPrefix(v.Name, tokenVolume) {
			name, there = v.Name, true
			break
		}
	}
	if !there {
		name = tokenVolume + rand.String(5)
	}
	needed := false
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if mountsAt(&containers[i], tokenPath) {
				continue
			}
			needed = true
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: tokenPath})
		}
	}
	if needed && !there {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: tokenSource()}})
	}
}

func mountsAt(c *corev1.Container, path string) bool {
	for _, m := range c.VolumeMounts {
		if m.MountPath == path {
			return true
		}
	}
	return false
}

func tokenSource() *corev1.ProjectedVolumeSource {
	mode, life := corev1.ProjectedVolumeSourceDefaultMode, int64(tokenLife)
	return &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &life}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: rootCA},
			Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
			Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
		}}}},
	}}
}

// onlyKnownSecrets holds a pod to the secrets that its account lists.
func onlyKnownSecrets(account *corev1.ServiceAccount, pod *corev1.Pod) error {
	if !enforces(account) {
		return nil
	}
	known, pulls := mountable(account), map[string]bool{}
	for _, s := range account.ImagePullSecrets {
		pulls[s.Name] = true
	}
	for _, v := range pod.Spec.Volumes {
		for _, name := range volumeSecrets(&v) {
			if !known[name] {
				return fmt.Errorf("volume with secret.secretName=%q is not allowed because service account %s does not reference that secret", name, account.Name)
			}
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if err := onlyKnownEnv("init container", c.Name, c.Env, c.EnvFrom, known, account); err != nil {
			return err
		}
	}
	for _, c := range pod.Spec.Containers {
		if err := onlyKnownEnv("container", c.Name, c.Env, c.EnvFrom, known, account); err != nil {
			return err
		}
	}
	for i, s := range pod.Spec.ImagePullSecrets {
		if !pulls[s.Name] {
			return fmt.Errorf("imagePullSecrets[%d].name=%q is not allowed because service account %s does not reference that imagePullSecret", i, s.Name, account.Name)
		}
	}
	return nil
}

// mountable returns the secrets that the pods of an account may use.
func mountable(account *corev1.ServiceAccount) map[string]bool {
	known := map[string]bool{}
	for _, s := range account.Secrets {
		known[s.Name] = true
	}
	return known
}

// volumeSecrets names the secrets whose content a volume shows.
func volumeSecrets(v *corev1.Volume) []string {
	var names []string
	if v.Secret != nil {
		names = append(names, v.Secret.SecretName)
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.Secret != nil {
				names = append(names, s.Secret.Name)
			}
		}
	}
	return names
}

// onlyKnownEnv refuses a container whose environment comes from other secrets.
func onlyKnownEnv(what, name string, env []corev1.EnvVar, from []corev1.EnvFromSource, known map[string]bool, account *corev1.ServiceAccount) error {
	for _, e := range env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && !known[e.ValueFrom.SecretKeyRef.Name] {
			return fmt.Errorf("%s %s with envVar %s referencing secret.secretName=%q is not allowed because service account %s does not reference that secret",
				what, name, e.Name, e.ValueFrom.SecretKeyRef.Name, account.Name)
		}
	}
	for _, f := range from {
		if f.SecretRef != nil && !known[f.SecretRef.Name] {
			return fmt.Errorf("%s %s with envFrom referencing secret.secretName=%q is not allowed because service account %s does not reference that secret",
				what, name, f.SecretRef.Name, account.Name)
		}
	}
	return nil
}
