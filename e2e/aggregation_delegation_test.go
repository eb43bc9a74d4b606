package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/rowlock/rowlock/e2e/harness"
)

// delegating is an aggregated server that decides nothing itself: whom it believes it reads
// where the cluster publishes it, and about tokens and rights it asks.
type delegating struct {
	known  cache.Store // of the ConfigMap
	tokens authenticationclient.TokenReviewsGetter
	rights authorizationclient.SubjectAccessReviewsGetter
}

// follow begins to read the ConfigMap as Kubernetes' library does, until ctx ends.
func (d *delegating) follow(ctx context.Context, c *rest.Config) {
	lw := cache.NewListWatchFromClient(coreclient.NewForConfigOrDie(c).RESTClient(), "configmaps", "kube-system",
		fields.OneTermEqualSelector("metadata.name", "extension-apiserver-authentication"))
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: lw, ObjectType: &corev1.ConfigMap{}, Handler: cache.ResourceEventHandlerFuncs{}})
	d.known = store
	go informer.Run(ctx.Done())
}

func (d *delegating) published() map[string]string {
	for _, item := range d.known.List() {
		return item.(*corev1.ConfigMap).Data
	}
	return nil
}

// which authenticates the user: by the front proxy's certificate and headers, or by a token.
func (d *delegating) who(r *http.Request) (authenticationv1.UserInfo, bool) {
	data := d.published()
	list := func(key string) (values []string) {
		_ = json.Unmarshal([]byte(data[key]), &values) // none is one that is empty
		return values
	}
	if len(r.TLS.PeerCertificates) > 0 {
		roots, cert := x509.NewCertPool(), r.TLS.PeerCertificates[0]
		roots.AppendCertsFromPEM([]byte(data["requestheader-client-ca-file"]))
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil &&
			slices.Contains(list("requestheader-allowed-names"), cert.Subject.CommonName) {
			u := authenticationv1.UserInfo{Extra: map[string]authenticationv1.ExtraValue{}}
			for _, name := range list("requestheader-username-headers") {
				if u.Username == "" {
					u.Username = r.Header.Get(name)
				}
			}
			for _, name := range list("requestheader-group-headers") {
				u.Groups = append(u.Groups, r.Header.Values(name)...)
			}
			for _, prefix := range list("requestheader-extra-headers-prefix") {
				for name, values := range r.Header {
					if key, ok := strings.CutPrefix(strings.ToLower(name), strings.ToLower(prefix)); ok {
						u.Extra[key] = values
					}
				}
			}
			return u, u.Username != ""
		}
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return authenticationv1.UserInfo{}, false
	}
	review, err := d.tokens.TokenReviews().Create(r.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	return review.Status.User, err == nil && review.Status.Authenticated
}

func (d *delegating) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/apis/g.example/v1" {
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"g.example/v1","resources":[]}`)
		return
	}
	user, ok := d.who(r)
	if !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := d.rights.SubjectAccessReviews().Create(r.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "g.example", Version: "v1", Resource: "widgets", Verb: strings.ToLower(r.Method), Name: "x"},
	}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Allowed {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	fmt.Fprint(w, user.Username, " ", user.Extra["scopes"])
}

// TestDelegatingServer: a server behind this one learns whom to believe, and asks about
// tokens and rights, with the roles that are there for it; without them it learns nothing.
func TestDelegatingServer(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	ctx := t.Context()
	admin := restConfig(t, s, "")
	core, roles := coreclient.NewForConfigOrDie(admin), rbacclient.NewForConfigOrDie(admin)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	account := func(name string) string {
		t.Helper()
		must(core.ServiceAccounts("kube-system").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
		token, err := core.ServiceAccounts("kube-system").CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		must(token, err)
		return token.Status.Token
	}
	own := rest.AnonymousClientConfig(admin)
	own.BearerToken = account("extension")
	d := &delegating{tokens: authenticationclient.NewForConfigOrDie(own), rights: authorizationclient.NewForConfigOrDie(own)}
	maps := coreclient.NewForConfigOrDie(own).ConfigMaps("kube-system")
	const published = "extension-apiserver-authentication"
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := maps.Get(ctx, published, metav1.GetOptions{})
	refused("reading without the role", err)
	_, err = d.tokens.TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: harness.AdminToken}}, metav1.CreateOptions{})
	refused("a token without the role", err)
	_, err = d.rights.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane",
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"}}}, metav1.CreateOptions{})
	refused("a right without the role", err)

	subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "extension"}}
	must(roles.RoleBindings("kube-system").Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "extension"}, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "extension-apiserver-authentication-reader"}}, metav1.CreateOptions{}))
	must(roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "extension"}, Subjects: subject,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}}, metav1.CreateOptions{}))
	d.follow(ctx, own)
	eventually(t, "whom to believe is known", func() bool { return d.published()["requestheader-client-ca-file"] != "" })
	_, err = maps.List(ctx, metav1.ListOptions{})
	refused("all of them", err)

	behind := httptest.NewUnstartedServer(d)
	behind.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	behind.StartTLS()
	t.Cleanup(behind.Close)
	must(core.Services("kube-system").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "extension"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}, metav1.CreateOptions{}))
	register := fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.g.example"},"spec":{"group":"g.example","version":"v1","groupPriorityMinimum":1000,
		"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"namespace":"kube-system","name":"extension","port":%d}}}`, behind.Listener.Addr().(*net.TCPAddr).Port)
	if err := core.RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").SetHeader("Content-Type", "application/json").Body([]byte(register)).Do(ctx).Error(); err != nil {
		t.Fatal(err)
	}
	through, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c *http.Client, method, base string, header ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, base+"/apis/g.example/v1/widgets/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	jane := []string{"Authorization", "Bearer " + harness.AdminToken, "Impersonate-User", "jane", "Impersonate-Extra-Scopes", "a"}
	if code, body := ask(through, "GET", s.URL, jane...); code != http.StatusForbidden || !strings.Contains(body, "jane") {
		t.Errorf("jane, before she has a right: %d %s", code, body)
	}
	caller := []string{"Authorization", "Bearer " + account("caller")}
	if code, _ := ask(behind.Client(), "GET", behind.URL, caller...); code != http.StatusForbidden {
		t.Errorf("an account that asks by itself, before it has a right: %d", code)
	}
	must(roles.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"g.example"}, Resources: []string{"widgets"}, Verbs: []string{"get"}}}}, metav1.CreateOptions{}))
	must(roles.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "widgets"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}, {Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "caller"}}}, metav1.CreateOptions{}))
	eventually(t, "jane is known behind", func() bool {
		code, body := ask(through, "GET", s.URL, jane...)
		return code == http.StatusOK && body == "jane [a]"
	})
	if code, body := ask(behind.Client(), "GET", behind.URL, caller...); code != http.StatusOK || !strings.HasPrefix(body, "system:serviceaccount:kube-system:caller") {
		t.Errorf("an account that asks by itself: %d %s", code, body)
	}
	if code, _ := ask(behind.Client(), "DELETE", behind.URL, caller...); code != http.StatusForbidden {
		t.Errorf("what it has no right to: %d", code)
	}

	// Headers alone, or with another certificate, do not authenticate.
	headers := []string{"X-Remote-User", "jane", "X-Remote-Group", "system:masters"}
	stranger := behind.Client().Transport.(*http.Transport).Clone()
	stranger.TLSClientConfig.Certificates = []tls.Certificate{*harness.NewAuthority(t, "other").Client(t, "front-proxy-client")}
	for name, c := range map[string]*http.Client{"no certificate": behind.Client(), "a stranger's": {Transport: stranger}} {
		if code, _ := ask(c, "GET", behind.URL, headers...); code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, code)
		}
		if code, _ := ask(c, "GET", behind.URL, append(headers, "Authorization", "Bearer nonsense")...); code != http.StatusUnauthorized {
			t.Errorf("%s, and a wrong token: %d", name, code)
		}
	}
	stranger.CloseIdleConnections()
}
