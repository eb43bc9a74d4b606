//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"time"
)

const (
	accountsPath    = "/serviceaccounts/default"
	requestsPath    = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	rolesPath       = "/apis/rbac.authorization.k8s.io/v1/namespaces/"
)

// token requests a token, and uses it.
func (w *worker) token(ctx context.Context) { w.tokenOf(ctx, "load") }

func (w *worker) tokenOf(ctx context.Context, namespace string) {
	o := w.client.do(ctx, "token", http.StatusCreated, http.MethodPost, "/api/v1/namespaces/"+namespace+accountsPath+"/token", jsonType, `{"spec":{"expirationSeconds":600}}`)
	if o != nil {
		w.whoAmI(ctx, w.client.http, o.issued().Token)
	}
}

// whoAmI uses a credential.
func (w *worker) whoAmI(ctx context.Context, by *http.Client, token string) {
	code, answer, err := w.client.sendBy(ctx, by, token, http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", jsonType, `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`)
	if ctx.Err() == nil && (err != nil || code != http.StatusCreated) {
		w.client.fail(fmt.Sprintf("a credential: %d", code), err, answer)
	}
}

// namespace makes a namespace with an account, rights and an object in it, uses the account, and deletes the namespace.
func (w *worker) namespace(ctx context.Context) {
	name := w.fresh("turn")
	if !w.create(ctx, "create", "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, name)) {
		return
	}
	path := "/api/v1/namespaces/" + name
	w.create(ctx, "create", path+"/configmaps", `{"metadata":{"name":"c"},"data":{"a":"b"}}`)
	w.create(ctx, "create", rolesPath+name+"/roles", `{"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}]}`)
	w.create(ctx, "create", rolesPath+name+"/rolebindings", `{"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"kind":"ServiceAccount","name":"default"}]}`)
	if w.until(ctx, path+accountsPath) == nil {
		w.tokenOf(ctx, name)
	}
	w.erase(ctx, "namespace", path)
}

// certificate requests a certificate, approves that, and uses the certificate on a connection of its own.
func (w *worker) certificate(ctx context.Context) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		return
	}
	name := w.fresh("csr")
	der, err := x509.CreateCertificateRequest(cryptorand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{"years"}}}, key)
	if err != nil {
		return
	}
	request := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	if !w.create(ctx, "create", requestsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"request":%q,"signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"],"expirationSeconds":600}}`, name, request)) {
		return
	}
	w.patch(ctx, "approval", requestsPath+"/"+name+"/approval", `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Years","message":"m"}]}}`)
	var signed []byte
	for deadline := time.Now().Add(time.Minute); len(signed) == 0 && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		o := w.client.do(ctx, "get", http.StatusOK, http.MethodGet, requestsPath+"/"+name, "", "")
		if o != nil {
			signed = o.issued().Certificate
		}
		if time.Now().After(deadline) {
			w.client.fail("a certificate was not signed within a minute", nil, nil)
			return
		}
	}
	var chain tls.Certificate
	for block, rest := pem.Decode(signed); block != nil; block, rest = pem.Decode(rest) {
		chain.Certificate = append(chain.Certificate, block.Bytes)
	}
	if len(chain.Certificate) > 0 {
		chain.PrivateKey = key
		by := w.client.fresh(w.random.IntN(2) == 0, chain)
		w.whoAmI(ctx, by, "")
		by.CloseIdleConnections()
		w.client.count("certificate")
	}
	w.erase(ctx, "certificate request deleted", requestsPath+"/"+name)
}

// definition returns a CustomResourceDefinition.
func definition(group, kind, plural string) string {
	return fmt.Sprintf(`{"metadata":{"name":"%[3]s.%[1]s"},"spec":{"group":%[1]q,"scope":"Namespaced","names":{"kind":%[2]q,"plural":%[3]q},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{
"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"!has(self.n) || self.n >= 0"}],"properties":{"n":{"type":"integer"},"text":{"type":"string"}}}}}}}]}}`, group, kind, plural)
}

// definitions creates and deletes definitions, each of a kind of its own, until ctx ends.
func (l *load) definitions(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		plural, group := fmt.Sprintf("turns%d", i), fmt.Sprintf("g%d.example.com", i)
		path := fmt.Sprintf("/apis/%s/v1/namespaces/load/%s", group, plural)
		if l.client.do(ctx, "create", http.StatusCreated, http.MethodPost, definitionsPath, jsonType, definition(group, fmt.Sprintf("Turn%d", i), plural)) == nil {
			return
		}
		if err := l.until(ctx, path); err != nil {
			if ctx.Err() == nil {
				l.client.fail("a definition", err, nil)
			}
			return
		}
		l.client.do(ctx, "create", http.StatusCreated, http.MethodPost, path, jsonType, fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Turn%d","metadata":{"name":"t"},"spec":{"n":1}}`, group, i))
		if l.client.do(ctx, "definition", http.StatusOK, http.MethodDelete, definitionsPath+"/"+plural+"."+group, "", "") == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
	}
}
