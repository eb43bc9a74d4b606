package clusterinfo

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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx/bootstrap"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	signerAgent = "bootstrap-signer" // field manager of Signer's writes

	// clusterInfo is the ConfigMap that joining machines read before they trust anything.
	clusterInfo     = "cluster-info"
	mapsPath        = "/api/v1/namespaces/" + metav1.NamespacePublic + "/configmaps"
	infoKey         = "kubeconfig"
	signaturePrefix = "jws-kubeconfig-"
)

// Signer signs cluster-info with the bootstrap tokens that are for that.
type Signer struct{ reconcile.Base }

// Run works until ctx ends.
func (s *Signer) Run(ctx context.Context) error {
	var all reconcile.Key // all signatures are made together
	l := &reconcile.Loop{Base: s.Base, Failure: "cannot sign cluster-info", Keys: []reconcile.Key{all}}
	l.Reconcile = func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
		tokens, next := s.signing()
		return reconcile.Result{After: next}, s.sign(ctx, tokens)
	}
	l.Sources = []reconcile.Source{
		{Storage: "secrets", Scope: cache.Scope{Namespace: metav1.NamespaceSystem}, Changed: func(d cache.Delivery) {
			if isToken(d.Item()) {
				l.Queue.Add(all, 0)
			}
		}},
		{Storage: "configmaps", Scope: cache.Scope{Namespace: metav1.NamespacePublic, Name: clusterInfo}, Changed: func(cache.Delivery) { l.Queue.Add(all, 0) }},
	}
	return l.Run(ctx)
}

// signing returns the tokens that sign, secrets by id, and when the first of them expires; 0: none does.
func (s *Signer) signing() (tokens map[string]string, next time.Duration) {
	tokens = map[string]string{}
	s.Cache.Snapshot("secrets").Ascend(metav1.NamespaceSystem, "", "", func(item *cache.Item) bool {
		if !isToken(item) {
			return true
		}
		token := tokenOf(item)
		if token == nil || token.DeletionTimestamp != nil || string(token.Data[bootstrap.KeySigning]) != "true" {
			return true
		}
		left, ends := bootstrap.Remaining(token.Data, s.Now())
		if ends && left <= 0 {
			return true
		}
		if ends && (next == 0 || left < next) {
			next = left
		}
		if id, secret := string(token.Data[bootstrap.KeyID]), string(token.Data[bootstrap.KeySecret]); id != "" && secret != "" && token.Name == bootstrap.NamePrefix+id {
			tokens[id] = secret
		}
		return true
	})
	return tokens, next
}

// sign brings the signatures in cluster-info in line with the tokens, secrets by id. Without the ConfigMap there is
// nothing to do.
func (s *Signer) sign(ctx context.Context, tokens map[string]string) error {
	info := &corev1.ConfigMap{}
	if !reconcile.Decode(s.Cache.Get("configmaps", metav1.NamespacePublic, clusterInfo), info) {
		return nil
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
	return s.API.Call(ctx, signerAgent, http.MethodPut, mapsPath+"/"+clusterInfo, reconcile.JSON, info, nil)
}

// detached signs content with a secret (HS256), and omits the content from the signature. Clients compare the
// text with their own computation, so the header must have exactly this form. The secret is shorter than JOSE
// libraries accept now.
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
