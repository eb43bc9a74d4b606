//go:build unix

package traffic

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	green         = "/api/v1/namespaces/green/configmaps"
	webhooks      = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	changingGroup = "changing.rowlock.dev"
	definitions   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// hooks registers a webhook that refuses every ConfigMap of the namespace green, and takes it away again. What may be written
// is recorded as a right: a create that begins some time after the webhook was registered must be refused.
func (c *client) hooks(ctx context.Context) {
	server, ca, err := refusing()
	if err != nil {
		c.rec.Stuck("a webhook: " + err.Error())
		return
	}
	defer server.Close()
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	c.loose = true
	name := fmt.Sprintf("refusing-r%d", c.round)
	config := fmt.Sprintf(`{"metadata":{"name":%q},"webhooks":[{"name":"refuse.rowlock.dev","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":5,"failurePolicy":"Fail",
"clientConfig":{"url":%q,"caBundle":%q},"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"green"}},
"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE","UPDATE"]}]}]}`, name, server.URL, base64.StdEncoding.EncodeToString(ca))
	for turn := 0; ctx.Err() == nil; turn++ {
		subject := fmt.Sprintf("%s-r%d-%d without a webhook", c.name, c.round, turn)
		c.rec.Add(&history.Right{Subject: subject, Granted: true, Call: c.rec.Now(), Return: c.rec.Now(), Outcome: history.OK})
		create := func(long time.Duration) {
			for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; {
				if c.rand.IntN(2) == 0 {
					c.attempt(ctx, subject, "read", http.MethodPost, green, plainJSON, `{"metadata":{"generateName":"hooked-"}}`)
				} else {
					c.attempt(ctx, subject, "read", http.MethodPatch, green+"/hooked", mergePatch, fmt.Sprintf(`{"data":{"time":"%d"}}`, c.rec.Now()))
				}
				c.rest(ctx)
			}
		}
		if _, _, ok := c.must(ctx, admin, http.MethodPost, green, `{"metadata":{"name":"hooked"}}`, http.StatusCreated, http.StatusConflict); !ok {
			break
		}
		create(time.Second)
		if !c.change(ctx, admin, subject, false, http.MethodPost, webhooks, config, http.StatusCreated, http.StatusConflict) {
			break
		}
		create(afterwards)
		if _, _, ok := c.must(ctx, admin, http.MethodDelete, webhooks+"/"+name, "", http.StatusOK, http.StatusNotFound); !ok {
			break
		}
	}
	// The next round begins without it, and nothing of it is left.
	end, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	c.must(end, admin, http.MethodDelete, webhooks+"/"+name, "", http.StatusOK, http.StatusNotFound)
	c.must(end, admin, http.MethodDelete, green, "", http.StatusOK)
}

// attempt is a request whose right comes and goes.
func (c *client) attempt(ctx context.Context, subject, what, method, path, contentType, body string) {
	a := &history.Access{Subject: subject, Server: c.next(), What: what, Timed: c.token != harness.AdminToken, Call: c.rec.Now()}
	code, _, err := c.send(ctx, a.Server, method, path, contentType, body)
	if a.Return, a.Code = c.rec.Now(), code; err == nil {
		c.rec.Add(a)
	}
}

// refusing is a webhook that refuses everything, with the authority of its certificate.
func refusing() (*httptest.Server, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-240 * time.Hour), NotAfter: time.Now().Add(240 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", plainJSON)
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false,"status":{"message":"refused by the webhook"}}}`, review.Request.UID)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // servers are killed in the middle of calls
	server.StartTLS()
	return server, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
