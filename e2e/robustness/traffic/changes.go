//go:build unix

package traffic

import (
	"bytes"
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
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	green         = "/api/v1/namespaces/green/configmaps"
	webhooks      = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	mutating      = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
	policies      = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	bindings      = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
	changingGroup = "changing.rowlock.dev"
	definitions   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// hooks has every write of a ConfigMap of the namespace green be refused, and not: by a webhook that is registered and taken away, by
// one whose rules change, or by the binding of a policy; or be changed by a webhook. What may be written, or stays as it is, is recorded
// as a right: a write that begins some time after the change must be refused, or allowed.
func (c *client) hooks(ctx context.Context) {
	server, ca, err := refusing()
	if err != nil {
		c.rec.Stuck("a webhook: " + err.Error())
		return
	}
	defer server.Close()
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	name := fmt.Sprintf("refusing-r%d", c.round)
	hook := func(resource, path string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"webhooks":[{"name":"refuse.rowlock.dev","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":5,"failurePolicy":"Fail",
"clientConfig":{"url":%q,"caBundle":%q},"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"green"}},
"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":[%q],"operations":["CREATE","UPDATE"]}]}]}`, name, server.URL+path, base64.StdEncoding.EncodeToString(ca), resource)
	}
	rule := func(resource string) string {
		return fmt.Sprintf(`[{"op":"replace","path":"/webhooks/0/rules/0/resources/0","value":%q}]`, resource)
	}
	policy := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"failurePolicy":"Fail","matchConstraints":{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"green"}},
"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE","UPDATE"]}]},"validations":[{"expression":"false","reason":"Forbidden"}]}}`, name)
	binding := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%[1]q,"validationActions":["Deny"]}}`, name)
	made := []int{http.StatusCreated, http.StatusConflict}
	c.unhook(ctx, admin, fmt.Sprintf("refusing-r%d", c.round-1), 0) // which an earlier round may have left
	free := 0                                                       // the server that acknowledged the end of what refused writes before
	for turn := 0; ctx.Err() == nil; turn++ {
		way := (turn + c.round) % 4
		before := map[int][2]string{1: {webhooks, hook("secrets", "")}, 2: {policies, policy}}[way]
		subject := fmt.Sprintf("%s-r%d-%d without a webhook", c.name, c.round, turn)
		c.rec.Add(&history.Right{Subject: subject, Granted: true, Server: free, Call: c.rec.Now(), Return: c.rec.Now(), Outcome: history.OK})
		if !c.persist(ctx, "POST "+green, func(ctx context.Context, server int) (int, bool) {
			code := c.attemptAt(ctx, server, subject, "read", http.MethodPost, green, plainJSON, `{"metadata":{"name":"hooked"}}`)
			return code, slices.Contains(made, code)
		}) {
			break
		}
		if before[0] != "" {
			if _, _, ok := c.must(ctx, admin, http.MethodPost, before[0], before[1], made...); !ok {
				break
			}
		}
		write := func(long time.Duration) {
			for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; {
				if way == 3 {
					c.unchanged(ctx, subject)
				} else if c.rand.IntN(2) == 0 {
					c.attempt(ctx, subject, "read", http.MethodPost, green, plainJSON, `{"metadata":{"generateName":"hooked-"}}`)
				} else {
					c.attempt(ctx, subject, "read", http.MethodPatch, green+"/hooked", mergePatch, fmt.Sprintf(`{"data":{"time":"%d"}}`, c.rec.Now()))
				}
				c.rest(ctx)
			}
		}
		write(c.granted(turn / 2))
		ok := false
		switch way {
		case 0:
			ok = c.change(ctx, admin, subject, false, http.MethodPost, webhooks, hook("configmaps", ""), made...)
		case 1:
			ok = c.changePatch(ctx, admin, webhooks+"/"+name, subject, false, rule("configmaps"))
		case 3:
			ok = c.change(ctx, admin, subject, false, http.MethodPost, mutating, hook("configmaps", mutatingPath), made...)
		default:
			ok = c.change(ctx, admin, subject, false, http.MethodPost, bindings, binding, made...)
		}
		if !ok {
			break
		}
		write(afterwards)
		if way == 1 && turn%2 == 0 { // the next turn finds it without effect
			ok = c.changePatch(ctx, admin, webhooks+"/"+name, fmt.Sprintf("%s-r%d-%d by the webhook", c.name, c.round, turn), true, rule("secrets"))
			free = c.answered + 1
		} else {
			free, ok = c.unhook(ctx, admin, name, way)
		}
		if !ok {
			break
		}
	}
	// The next round begins without it, and nothing of it is left.
	end, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	c.unhook(end, admin, name, 0)
	c.must(end, admin, http.MethodDelete, policies+"/"+name, "", http.StatusOK, http.StatusNotFound)
	c.must(end, admin, http.MethodDelete, green, "", http.StatusOK)
}

// refusers are the paths of what refuses or changes writes in each way of hooks.
var refusers = [4]string{webhooks, webhooks, bindings, mutating}

// unhook takes away what refuses writes. A policy without a binding refuses nothing.
// It returns the server that acknowledged the end of what one way has, from 1 on.
func (c *client) unhook(ctx context.Context, admin *client, name string, way int) (server int, ok bool) {
	for _, path := range []string{webhooks, mutating, bindings} {
		if _, _, ok := c.must(ctx, admin, http.MethodDelete, path+"/"+name, "", http.StatusOK, http.StatusNotFound); !ok {
			return 0, false
		}
		if path == refusers[way] {
			server = c.answered + 1
		}
	}
	return server, true
}

// attempt is a request whose right comes and goes.
func (c *client) attempt(ctx context.Context, subject, what, method, path, contentType, body string) {
	c.attemptAt(ctx, c.next(), subject, what, method, path, contentType, body)
}

// attemptAt is attempt at a server. It returns the code of the answer; 0: there was none.
func (c *client) attemptAt(ctx context.Context, server int, subject, what, method, path, contentType, body string) int {
	a := &history.Access{Subject: subject, Server: server, What: what, Timed: c.token != harness.AdminToken, Call: c.rec.Now()}
	code, _, err := c.send(ctx, a.Server, method, path, contentType, body)
	if err != nil {
		return 0
	}
	a.Return, a.Code = c.rec.Now(), code
	c.rec.Add(a)
	return code
}

// unchanged is an attempt to create an object that no webhook changes.
func (c *client) unchanged(ctx context.Context, subject string) {
	a := &history.Access{Subject: subject, Server: c.next(), What: "read", Call: c.rec.Now()}
	code, answer, err := c.send(ctx, a.Server, http.MethodPost, green, plainJSON, `{"metadata":{"generateName":"hooked-"}}`)
	if a.Return, a.Code = c.rec.Now(), code; code == http.StatusCreated && bytes.Contains(answer, []byte(changedBy)) {
		a.Code = http.StatusForbidden
	}
	if err == nil {
		c.rec.Add(a)
	}
}

// mutatingPath is where the webhook changes objects.
const mutatingPath = "/change"

// changedBy is the label by which the webhook changes objects.
const changedBy = "changed-by-the-webhook"

// refusing is a webhook that refuses everything, or changes it if it is registered as one that may, with the authority of its certificate.
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
		if r.URL.Path == mutatingPath {
			patch := base64.StdEncoding.EncodeToString([]byte(`[{"op":"add","path":"/metadata/labels","value":{"` + changedBy + `":"yes"}}]`))
			fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true,"patchType":"JSONPatch","patch":%q}}`, review.Request.UID, patch)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false,"status":{"message":"refused by the webhook"}}}`, review.Request.UID)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // servers are killed in the middle of calls
	server.StartTLS()
	return server, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
