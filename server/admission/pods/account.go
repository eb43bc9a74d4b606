// Package pods holds the admission plugins that complete pods: the service account
// and its token, priority, tolerations and the runtime class.
package pods

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/rowlock/rowlock/server/admission"
)

// Where a pod finds the token of its service account, and in which volume.
const (
	tokenPath   = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenVolume = "kube-api-access-"
	tokenLife   = 3607 // an hour and a little: kubelets know it by the odd number
	rootCA      = "kube-root-ca.crt"

	defaultAccount = "default"
	accountTries   = 10
	accountWait    = 50 * time.Millisecond

	enforceSecrets = "kubernetes.io/enforce-mountable-secrets"
	mirror         = corev1.MirrorPodAnnotationKey
)

// ServiceAccount names the default account where a pod names none, refuses pods
// whose account does not exist, and gives containers their token.
type ServiceAccount struct{ Objects admission.Objects }

var _ admission.Mutator = ServiceAccount{}

// Name implements admission.Plugin.
func (ServiceAccount) Name() string { return "ServiceAccount" }

// Handles implements admission.Plugin.
func (ServiceAccount) Handles(op admission.Operation) bool { return op == admission.Create }

// Admit implements admission.Mutator.
func (p ServiceAccount) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is("", "pods", "") {
		return nil
	}
	if _, isMirror := pod.Annotations[mirror]; isMirror {
		return mirrorPod(a, pod)
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultAccount
	}
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName
	account, err := p.account(ctx, a.Namespace, pod.Spec.ServiceAccountName)
	if err != nil {
		return err
	}
	if account == nil {
		return a.Forbid(fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found", a.Namespace, pod.Spec.ServiceAccountName, pod.Spec.ServiceAccountName))
	}
	if account.Annotations[enforceSecrets] == "true" {
		if err := onlyKnownSecrets(account, pod); err != nil {
			return a.Forbid(err)
		}
	}
	if wantsToken(account, pod) {
		mountToken(&pod.Spec)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, account.ImagePullSecrets...)
	}
	return nil
}

// account finds a service account. The default one of a new namespace may be on its
// way: that is waited for, briefly.
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

// mirrorPod refuses what a kubelet's static pod cannot have: its secrets are not
// the API's.
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
	secrets, pulls := map[string]bool{}, map[string]bool{}
	for _, s := range account.Secrets {
		secrets[s.Name] = true
	}
	for _, s := range account.ImagePullSecrets {
		pulls[s.Name] = true
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil && !secrets[v.Secret.SecretName] {
			return fmt.Errorf("volume with secret.secretName=%q is not allowed because service account %s does not reference that secret", v.Secret.SecretName, account.Name)
		}
	}
	for prefix, containers := range map[string][]corev1.Container{"init container": pod.Spec.InitContainers, "container": pod.Spec.Containers} {
		for _, c := range containers {
			for _, e := range c.Env {
				if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && !secrets[e.ValueFrom.SecretKeyRef.Name] {
					return fmt.Errorf("%s %s with envVar %s referencing secret.secretName=%q is not allowed because service account %s does not reference that secret", prefix, c.Name, e.Name, e.ValueFrom.SecretKeyRef.Name, account.Name)
				}
			}
		}
	}
	for i, s := range pod.Spec.ImagePullSecrets {
		if !pulls[s.Name] {
			return fmt.Errorf("imagePullSecrets[%d].name=%q is not allowed because service account %s does not reference that imagePullSecret", i, s.Name, account.Name)
		}
	}
	return nil
}
