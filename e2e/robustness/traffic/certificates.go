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
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

	// decisionTime is how long a request stays undecided: longer than its controller waits before it acts.
	decisionTime = 1500 * time.Millisecond

	forgedTime       = time.Hour       // for how long certificates of forge are valid, before and after a time
	certificateTime  = 6 * time.Second // for how long one is valid that ends soon
	certificateSlack = time.Second     // after its end, in which a server may do either
)

// certificates requests client certificates: one is approved and used, one is denied, and one stays undecided. Rights that the user of the
// certificate and its group have come and go. Certificates that are for servers, of no authority, or of another time never work, and one
// works until its time ends.
func (c *client) certificates(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	for turn := 0; ctx.Err() == nil; turn++ {
		if !c.certificate(ctx, admin, fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn), turn) {
			return
		}
	}
}

func (c *client) certificate(ctx context.Context, admin *client, name string, turn int) bool {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.rec.Stuck(err.Error())
		return false
	}
	subject := pkix.Name{CommonName: name, Organization: []string{name + "-group"}}
	leaf, ok := c.certified(ctx, admin, name, subject, key)
	if !ok {
		return false
	}
	if left := time.Until(leaf.NotAfter); left < 5*time.Minute || time.Now().Before(leaf.NotBefore) {
		return true // a server whose clock is set has signed it
	}
	forge, err := c.newForge(subject, key)
	if err != nil {
		c.rec.Stuck("a certificate: " + err.Error())
		return false
	}
	by := func(der []byte) *client {
		u := c.Traffic.client(fmt.Sprintf("%s-%d", name, len(der)), c.proto, false)
		u.token = ""
		u.http.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
		return u
	}
	user := by(leaf.Raw)
	users := []*client{user}
	defer func() {
		for _, u := range users {
			u.http.CloseIdleConnections()
		}
	}()
	made, gone := []int{http.StatusCreated, http.StatusConflict}, []int{http.StatusOK, http.StatusNotFound}
	target, group, as := name+"-target", name+"-group", name+"-as"
	objects := [][2]string{
		{rolesPath + "roles/" + group, named(group, "", "", "configmaps", `"get"`)},
		{rolesPath + "roles/" + target, named(target, "", "", "configmaps", `"get"`)},
		{rolesPath + "rolebindings/" + target, boundTo(target, "Role", target, userSubject(target))},
		{rbacPath + "clusterroles/" + as, fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"],"resourceNames":[%q]}]}`, as, target)},
	}
	for _, o := range objects {
		if _, _, ok := c.must(ctx, admin, http.MethodPost, parent(o[0]), o[1], made...); !ok {
			return false
		}
	}
	get := func(as, path string, groups ...string) use {
		return use{as: as, groups: groups, method: http.MethodGet, path: path}
	}
	all := []way{
		{name: group, give: [2]string{rolesPath + "rolebindings", boundTo(group, "Role", group, groupSubject(group))}, uses: []use{get("", redMaps+"/"+group)},
			nevers: []use{get("", redMaps+"/secret-of-red"), get("", "/api/v1/namespaces/blue/configmaps/"+group)}},
		{name: as, give: [2]string{rbacPath + "clusterrolebindings", boundTo(as, "ClusterRole", as, userSubject(name))}, uses: []use{get(target, redMaps+"/"+target)},
			nevers: []use{get("admin", redMaps+"/"+target), get(target, redMaps+"/"+target, "system:masters"), get(target+"-2", redMaps+"/"+target), get("", redMaps+"/"+target)}},
	}
	forged := []use{get("", redMaps+"/"+group), get("", redMaps)}
	self, server := by(forge.self()), by(forge.sign(x509.ExtKeyUsageServerAuth, time.Now()))
	old := by(forge.sign(x509.ExtKeyUsageClientAuth, time.Now().Add(-3*time.Hour)))
	ends := time.Now().Add(certificateTime).Truncate(time.Second)
	short := by(forge.sign(x509.ExtKeyUsageClientAuth, ends.Add(-forgedTime)))
	users = append(users, self, server, old, short)
	try := func(long time.Duration) {
		for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; {
			user.useWays(ctx, all, time.Second)
			for _, u := range []*client{self, server} {
				u.use(ctx, group, "never", forged[c.rand.IntN(len(forged))])
			}
			old.use(ctx, group, history.Ended, forged[0])
			if ended := time.Now().After(ends.Add(certificateSlack)); ended { // on connections that it had before
				short.use(ctx, group, history.Ended, forged[0])
			} else {
				valid := forged[0]
				valid.until = ends
				short.use(ctx, group, "read", valid)
			}
		}
	}
	for _, w := range all {
		if !c.change(ctx, admin, w.name, true, http.MethodPost, w.give[0], w.give[1], made...) {
			return false
		}
	}
	try(c.granted(turn))
	for _, w := range all {
		if !c.change(ctx, admin, w.name, false, http.MethodDelete, w.give[0]+"/"+w.name, "", gone...) {
			return false
		}
	}
	try(afterwards)
	c.undecided(ctx, name)
	for _, o := range append(objects, [2]string{requests + "/" + name + "-approved"}, [2]string{requests + "/" + name + "-denied"}, [2]string{requests + "/" + name + "-open"}) {
		if _, _, ok := c.must(ctx, admin, http.MethodDelete, o[0], "", gone...); !ok {
			return false
		}
	}
	return true
}

func parent(path string) string {
	for i := len(path) - 1; ; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
}

// certified has a certificate signed, and none for other requests.
func (c *client) certified(ctx context.Context, admin *client, name string, subject pkix.Name, key *ecdsa.PrivateKey) (leaf *x509.Certificate, ok bool) {
	for _, end := range []string{"-approved", "-denied", "-open"} {
		if _, _, ok := c.must(ctx, admin, http.MethodPost, requests, requestBody(name+end, subject, key), http.StatusCreated, http.StatusConflict); !ok {
			return nil, false
		}
	}
	// The signer looks at each request before and after it is decided.
	c.during(ctx, decisionTime, func(int) { c.undecided(ctx, name) })
	for end, condition := range map[string]string{"-denied": "Denied", "-approved": "Approved"} {
		decision := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":"True","reason":"Decided","message":"by the traffic"}]}}`, condition)
		// A decision that was made, and not acknowledged, may not be changed. A server whose clock is hours ahead deletes the request,
		// which it takes for an old one.
		code, _, ok := admin.mustAs(ctx, admin, mergePatch, http.MethodPatch, requests+"/"+name+end+"/approval", decision, http.StatusOK, http.StatusUnprocessableEntity, http.StatusNotFound)
		if !ok || code == http.StatusNotFound {
			return nil, false
		}
	}
	ok = admin.persist(ctx, "GET "+requests+"/"+name+"-approved until it has a certificate", func(ctx context.Context, server int) (int, bool) {
		code, issued, err := admin.issued(ctx, server, name+"-approved")
		leaf = issued
		return code, err == nil && (issued != nil || code == http.StatusNotFound)
	})
	if !ok || leaf == nil {
		return nil, false
	}
	c.undecided(ctx, name)
	masters := pkix.Name{CommonName: name, Organization: []string{"system:masters"}}
	c.rule(ctx, &rule{what: "a request for a certificate of the group system:masters", method: http.MethodPost, path: requests + "?dryRun=All", contentType: plainJSON, body: requestBody(name+"-masters", masters, key), code: http.StatusForbidden})
	if public, is := leaf.PublicKey.(*ecdsa.PublicKey); !is || !public.Equal(key.Public()) || leaf.Subject.CommonName != subject.CommonName || !slices.Equal(leaf.Subject.Organization, subject.Organization) {
		c.rec.Stuck(fmt.Sprintf("a certificate for %s is of %s, or of another key", subject, leaf.Subject))
		return nil, false
	}
	return leaf, true
}

// requestBody returns a request for a client certificate.
func requestBody(name string, subject pkix.Name, key *ecdsa.PrivateKey) string {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		panic(err) // of a key that signs
	}
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"signerName":"kubernetes.io/kube-apiserver-client","expirationSeconds":600,"usages":["digital signature","client auth"],"request":%q}}`, name, text)
}

// undecided looks at each server for a certificate of the request that was denied, and of the undecided one.
func (c *client) undecided(ctx context.Context, name string) {
	for server := range c.c.Len() {
		for _, end := range []string{"-denied", "-open"} {
			a := &history.Access{Subject: "a certificate for a request that was not approved", Server: server, What: history.Rule, Want: http.StatusForbidden, Code: http.StatusForbidden, Call: c.rec.Now()}
			code, leaf, err := c.issued(ctx, server, name+end)
			if a.Return = c.rec.Now(); err != nil || code != http.StatusOK {
				continue
			}
			if leaf != nil {
				a.Code = http.StatusOK
			}
			c.rec.Add(a)
		}
	}
}

// issued returns the certificate of a request; nil: it has none.
func (c *client) issued(ctx context.Context, server int, name string) (code int, leaf *x509.Certificate, err error) {
	code, answer, err := c.send(ctx, server, http.MethodGet, requests+"/"+name, "", "")
	var request struct{ Status struct{ Certificate []byte } }
	if err != nil || code != http.StatusOK {
		return code, nil, err
	}
	if err := json.Unmarshal(answer, &request); err != nil || len(request.Status.Certificate) == 0 {
		return code, nil, err
	}
	block, _ := pem.Decode(request.Status.Certificate)
	if block == nil {
		return code, nil, errors.New("a certificate that is not PEM")
	}
	leaf, err = x509.ParseCertificate(block.Bytes)
	return code, leaf, err
}

// forge makes certificates that no server made.
type forge struct {
	authority *x509.Certificate
	by        any // the key of the authority
	subject   pkix.Name
	key       *ecdsa.PrivateKey
}

func (c *client) newForge(subject pkix.Name, key *ecdsa.PrivateKey) (*forge, error) {
	authority, err := c.c.Authority()
	if err != nil {
		return nil, err
	}
	by, err := c.c.Key(cluster.AuthorityKey)
	return &forge{authority, by, subject, key}, err
}

func (f *forge) template(use x509.ExtKeyUsage, at time.Time) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(at.UnixNano()), Subject: f.subject, NotBefore: at.Add(-forgedTime), NotAfter: at.Add(forgedTime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}, BasicConstraintsValid: true}
}

// sign makes a certificate of the authority, for a use and around a time.
func (f *forge) sign(use x509.ExtKeyUsage, at time.Time) []byte {
	der, err := x509.CreateCertificate(rand.Reader, f.template(use, at), f.authority, f.key.Public(), f.by)
	if err != nil {
		panic(err) // the key is that of the authority
	}
	return der
}

// self makes a certificate of no authority.
func (f *forge) self() []byte {
	t := f.template(x509.ExtKeyUsageClientAuth, time.Now())
	der, err := x509.CreateCertificate(rand.Reader, t, t, f.key.Public(), f.key)
	if err != nil {
		panic(err)
	}
	return der
}
