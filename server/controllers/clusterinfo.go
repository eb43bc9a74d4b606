package controllers

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clusterInfo is the ConfigMap that joining machines read before they trust anything.
const (
	clusterInfo     = "cluster-info"
	infoKey         = "kubeconfig"
	signaturePrefix = "jws-kubeconfig-"
)

// sign brings the signatures in cluster-info in line with the tokens, secrets by id.
// Without the ConfigMap there is nothing to do.
func (b *BootstrapTokens) sign(ctx context.Context, tokens map[string]string) error {
	item := b.Cache.Get("configmaps", metav1.NamespacePublic, clusterInfo)
	if item == nil || item.Corrupt != nil {
		return nil
	}
	info := &corev1.ConfigMap{}
	if err := json.Unmarshal(item.JSON(), info); err != nil {
		return err
	}
	content, ok := info.Data[infoKey]
	if !ok || info.DeletionTimestamp != nil {
		return nil
	}
	want := maps.Clone(info.Data)
	maps.DeleteFunc(want, func(key, _ string) bool { return strings.HasPrefix(key, signaturePrefix) })
	for id, secret := range tokens {
		signature, err := detached(content, id, id+"."+secret)
		if err != nil {
			return err
		}
		want[signaturePrefix+id] = signature
	}
	if maps.Equal(want, info.Data) {
		return nil
	}
	info.Data = want
	err := b.API.Call(ctx, "bootstrap-signer", http.MethodPut, "/api/v1/namespaces/"+metav1.NamespacePublic+"/configmaps/"+clusterInfo, "application/json", info, nil)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the change that was faster brings us back
	}
	return err
}

// detached signs content with a secret (HS256), and leaves the content out of the
// signature. Clients compare the text with one that they compute,
// so that the header is written in just this way. The secret is shorter than JOSE
// libraries now demand of one.
func detached(content, id, secret string) (string, error) {
	header, err := json.Marshal(struct {
		Alg string `json:"alg"`
		ID  string `json:"kid"`
	}{"HS256", id})
	if err != nil {
		return "", fmt.Errorf("signing cluster-info: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(encode(header) + "." + encode([]byte(content))))
	return encode(header) + ".." + encode(mac.Sum(nil)), nil
}
