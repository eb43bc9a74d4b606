package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

func attackCertificates(t *testing.T, a *access) {
	stranger := harness.NewAuthority(t, "users") // of the same name
	named := func(change func(*x509.Certificate)) *tls.Certificate {
		return a.users.Issue(t, func(c *x509.Certificate) {
			c.Subject = pkix.Name{CommonName: "jane", Organization: []string{"devs"}}
			change(c)
		})
	}
	selfSigned := *a.users.Client(t, "jane", "system:masters")
	middle := named(func(c *x509.Certificate) { c.IsCA, c.KeyUsage = false, x509.KeyUsageCertSign })
	for _, tc := range []struct {
		name string
		cert *tls.Certificate
		want string
	}{
		{"good", a.users.Client(t, "jane", "ants", "bees"), "jane ants,bees"},
		{"of another authority", stranger.Client(t, "jane", "system:masters"), "401"},
		{"of the proxy's authority", a.front.Client(t, "jane", "system:masters"), "401"},
		{"expired", named(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Minute)
		}), "401"},
		{"of the future", named(func(c *x509.Certificate) {
			c.NotBefore, c.NotAfter = time.Now().Add(time.Minute), time.Now().Add(time.Hour)
		}), "401"},
		{"of a server", named(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), "401"},
		{"without a name", a.users.Client(t, "", "system:masters"), "401"}, // the proxy's authority does not know it
		{"signed by one that is no authority", issuedBy(t, middle), "401"},
	} {
		if got := a.who(t, call{cert: tc.cert}); got != tc.want {
			t.Errorf("%s: taken as %s, want %s", tc.name, got, tc.want)
		}
	}
	// A certificate and a token: whichever is good counts, the certificate first.
	bad, good := stranger.Client(t, "eve", "system:masters"), a.users.Client(t, "jane")
	for _, tc := range []struct {
		cert  *tls.Certificate
		token string
		want  string
	}{
		{bad, harness.AdminToken, "admin system:masters"}, {good, "nonsense", "jane"}, {good, harness.AdminToken, "jane"}, {bad, "nonsense", "401"},
	} {
		if got := a.who(t, call{cert: tc.cert, token: tc.token}); got != tc.want {
			t.Errorf("%s with %s: taken as %s, want %s", tc.cert.Leaf.Subject, tc.token, got, tc.want)
		}
	}
	// Without the key a certificate is worth nothing.
	other := *a.users.Client(t, "x")
	selfSigned.PrivateKey = other.PrivateKey
	if _, err := a.client(&selfSigned).Get(a.s.URL + "/version"); err == nil {
		t.Error("a certificate is taken without its key")
	}
}

// issuedBy signs a certificate with one that is meant for a client.
func issuedBy(t *testing.T, parent *tls.Certificate) *tls.Certificate {
	t.Helper()
	leaf := harness.IssueWith(t, parent, "eve", "system:masters")
	leaf.Certificate = append(leaf.Certificate, parent.Certificate[0])
	return leaf
}

func attackProxyHeaders(t *testing.T, a *access) {
	proxy, spoof := a.front.Client(t, "front-proxy"), a.users.Client(t, "front-proxy")
	other, jane := a.front.Client(t, "back-proxy"), a.users.Client(t, "jane", "devs")
	masters := func(more ...string) http.Header {
		h := http.Header{"X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = append(h[more[i]], more[i+1])
		}
		return h
	}
	for _, tc := range []struct {
		name    string
		cert    *tls.Certificate
		token   string
		headers http.Header
		want    string
	}{
		{"the proxy", proxy, "", http.Header{"X-Remote-User": {"jane"}, "X-Remote-Group": {"a", "b,c"}}, "jane a,b,c"},
		{"the proxy, and a bad token", proxy, "nonsense", http.Header{"X-Remote-User": {"jane"}}, "jane"},
		{"the proxy, no user", proxy, "", http.Header{"X-Remote-Group": {"system:masters"}}, "401"},
		{"the proxy, an empty user", proxy, "", http.Header{"X-Remote-User": {""}, "X-Remote-Group": {"system:masters"}}, "401"},
		{"the proxy, two users", proxy, "", http.Header{"X-Remote-User": {"jane", "root"}}, "jane"},
		{"the proxy, an empty group", proxy, "", http.Header{"X-Remote-User": {"jane"}, "X-Remote-Group": {"", "g"}}, "jane g"},
		{"no certificate", nil, "", masters(), "anonymous"},
		{"no certificate, a token", nil, harness.AdminToken, http.Header{"X-Remote-User": {"jane"}}, "admin system:masters"},
		{"a user's certificate", jane, "", masters(), "jane devs"},
		{"the proxy's name, another authority", spoof, "", masters(), "front-proxy"},
		{"the proxy's authority, another name", other, "", masters(), "401"},
		{"lower case", nil, "", http.Header{"x-remote-user": {"root"}, "x-remote-group": {"system:masters"}}, "anonymous"},
		{"lower case of the proxy", proxy, "", http.Header{"x-remote-user": {"jane"}, "X-REMOTE-GROUP": {"g"}}, "jane g"},
		{"underscores beside the proxy's", proxy, "", http.Header{"X-Remote-User": {"jane"}, "X_Remote_User": {"root"}, "X_Remote_Group": {"system:masters"}}, "jane"},
		{"underscores alone", proxy, "", http.Header{"X_Remote_User": {"root"}}, "401"},
		{"hop by hop", jane, "", masters("Connection", "X-Remote-User, keep-alive", "X-Forwarded-Client-Cert", "Subject=\"CN=front-proxy\"", "X-Ssl-Client-Verify", "SUCCESS"), "jane devs"},
		{"impersonation through the proxy without the right to", proxy, "", http.Header{"X-Remote-User": {"jane"}, "Impersonate-User": {"admin"}, "Impersonate-Group": {"system:masters"}}, "403"},
	} {
		if got := a.who(t, call{cert: tc.cert, token: tc.token, headers: tc.headers}); got != tc.want {
			t.Errorf("%s: taken as %s, want %s", tc.name, got, tc.want)
		}
	}
}

// attackImpersonation tries every combination of what a user may be, may not be, and
// leaves out. It may be bob, in group crew, with uid 7, with scope read, and account bot.
func attackImpersonation(t *testing.T, a *access) {
	a.namespace(t, "masks")
	a.grant(t, "", "actor", `[
		{"apiGroups":[""],"resources":["users"],"resourceNames":["bob"],"verbs":["impersonate"]},
		{"apiGroups":[""],"resources":["groups"],"resourceNames":["crew"],"verbs":["impersonate"]},
		{"apiGroups":["authentication.k8s.io"],"resources":["uids"],"resourceNames":["7"],"verbs":["impersonate"]},
		{"apiGroups":["authentication.k8s.io"],"resources":["userextras/scopes"],"resourceNames":["read"],"verbs":["impersonate"]}]`)
	a.grant(t, "masks", "actor", `[{"apiGroups":[""],"resources":["serviceaccounts"],"resourceNames":["bot"],"verbs":["impersonate"]}]`)
	actor := a.users.Client(t, "actor")
	type choice struct {
		value string
		may   bool
	}
	none := choice{"", true}
	const account = "system:serviceaccount:masks:bot"
	for _, user := range []choice{none, {"bob", true}, {"root", false}, {account, true}, {"system:serviceaccount:masks:default", false}, {"system:serviceaccount:kube-system:bot", false}} {
		for _, group := range []choice{none, {"crew", true}, {"system:masters", false}, {"crew,system:masters", false}} {
			for _, uid := range []choice{none, {"7", true}, {"8", false}} {
				for _, extra := range []choice{none, {"Scopes=read", true}, {"Scopes=write", false}, {"Other=read", false}} {
					h := http.Header{}
					if user.value != "" {
						h["Impersonate-User"] = []string{user.value}
					}
					if group.value != "" {
						h["Impersonate-Group"] = strings.Split(group.value, ",")
					}
					if uid.value != "" {
						h["Impersonate-Uid"] = []string{uid.value}
					}
					if name, value, ok := strings.Cut(extra.value, "="); ok {
						h["Impersonate-Extra-"+name] = []string{value}
					}
					want := "403"
					switch {
					case len(h) == 0:
						want = "actor"
					case user == none:
						want = "500"
					case user.may && group.may && uid.may && extra.may:
						want = strings.TrimSuffix(user.value+" "+group.value, " ")
						if user.value == account && group == none {
							want = account + " system:serviceaccounts,system:serviceaccounts:masks"
						}
					}
					if got := a.who(t, call{cert: actor, headers: h}); got != want {
						t.Errorf("%v: taken as %s, want %s", h, got, want)
					}
				}
			}
		}
	}
	for name, h := range map[string]http.Header{
		"users":           {"Impersonate-User": {"bob", "root"}},
		"underscores":     {"Impersonate-User": {"bob"}, "Impersonate_Group": {"system:masters"}},
		"an odd spelling": {"impersonate-user": {"bob"}},
	} {
		if got := a.who(t, call{cert: actor, headers: h}); got != "bob" {
			t.Errorf("%s: taken as %s", name, got)
		}
	}
	for _, user := range []string{"system:serviceaccount:masks:bot:", "system:serviceaccount::bot", "system:serviceaccount:masks:", "system:serviceaccount:Masks:bot", "SYSTEM:serviceaccount:masks:bot", "system:anonymous", "bob ", "Bob", "bob\t"} {
		h := http.Header{"Impersonate-User": {user}}
		if got := a.who(t, call{cert: actor, headers: h}); got != "403" && got != "bob" { // blanks around a value are no part of it
			t.Errorf("%q: taken as %s", user, got)
		}
	}
	// A mask under a mask: the first one's rights do not count.
	if got := a.who(t, call{cert: a.users.Client(t, "nobody"), headers: http.Header{"Impersonate-User": {"actor"}}}); got != "403" {
		t.Errorf("anybody is taken as %s", got)
	}
	// Requests that the impersonated user may not make are refused, whatever the actor may do.
	if code, _ := a.do(t, call{path: "/api/v1/secrets", token: harness.AdminToken, headers: http.Header{"Impersonate-User": {"bob"}}}); code != http.StatusForbidden {
		t.Error(fmt.Sprint("an administrator as bob: ", code))
	}
}
