package e2e

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	certificatesclient "k8s.io/client-go/kubernetes/typed/certificates/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestIdentities goes through the operations that the tests of Kubernetes' group
// sig-auth ask of an API server: certificate requests, service accounts, their tokens,
// and what others need to check these.
func TestIdentities(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	cfg := restConfig(t, s, "application/json")
	t.Run("certificate requests", func(t *testing.T) { certificateOperations(t, cfg) })
	t.Run("service accounts", func(t *testing.T) { accountOperations(t, cfg) })
	t.Run("tokens of pods", func(t *testing.T) { mountedTokens(t, cfg) })
	t.Run("issuer discovery", func(t *testing.T) { checkedByOthers(t, cfg) })
}

// watched waits for an event of a type about an object of a name.
func watched(t *testing.T, w watch.Interface, typ watch.EventType, name string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch ended before %s %s", typ, name)
			}
			if obj, ok := e.Object.(metav1.Object); ok && e.Type == typ && obj.GetName() == name {
				return
			}
		case <-deadline:
			t.Fatalf("no event %s %s", typ, name)
		}
	}
}

func certificateRequest(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": "operations"}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: "example.com/other", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

func certificateOperations(t *testing.T, cfg *rest.Config) {
	ctx, all := t.Context(), certificatesclient.NewForConfigOrDie(cfg).CertificateSigningRequests()
	ours := metav1.ListOptions{LabelSelector: "of=operations"}
	w, err := all.Watch(ctx, ours)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"one", "two", "three"} {
		made, err := all.Create(ctx, certificateRequest(t, name), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if made.Spec.Username != "admin" || !slices.Contains(made.Spec.Groups, "system:masters") {
			t.Errorf("asked by %q of %q", made.Spec.Username, made.Spec.Groups)
		}
		watched(t, w, watch.Added, name)
	}
	if list, err := all.List(ctx, ours); err != nil || len(list.Items) != 3 {
		t.Errorf("%v %v", list, err)
	}
	type request = *certificatesv1.CertificateSigningRequest
	patch := func(what, body string, sub ...string) func(request) (request, error) {
		return func(request) (request, error) {
			return all.Patch(ctx, "one", types.MergePatchType, []byte(strings.ReplaceAll(body, "WHAT", what)), metav1.PatchOptions{}, sub...)
		}
	}
	condition := func(typ string) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.RequestConditionType(typ), Status: corev1.ConditionTrue, Reason: "E2E", Message: "set"}
	}
	for _, tc := range []struct {
		name        string
		do          func(request) (request, error)
		annotations []string // afterwards
		conditions  []string
	}{
		{"patch", patch("patched", `{"metadata":{"annotations":{"WHAT":"true"}},"status":{"conditions":[{"type":"Lost","status":"True"}]}}`), []string{"patched"}, nil},
		{"update", func(r request) (request, error) {
			r.Annotations["updated"] = "true"
			r.Spec.SignerName, r.Status.Conditions = "example.com/changed", append(r.Status.Conditions, condition("Lost"))
			return all.Update(ctx, r, metav1.UpdateOptions{})
		}, []string{"patched", "updated"}, nil},
		{"patch of the approval", patch("approval", `{"metadata":{"annotations":{"WHAT":"true"}},"status":{"conditions":[{"type":"ApprovalPatch","status":"True","reason":"E2E"}]}}`, "approval"), []string{"approval", "patched", "updated"}, []string{"ApprovalPatch"}},
		{"update of the approval", func(r request) (request, error) {
			r.Status.Conditions = append(r.Status.Conditions, condition("Approved"))
			return all.UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{})
		}, []string{"approval", "patched", "updated"}, []string{"ApprovalPatch", "Approved"}},
		{"patch of the status", patch("status", `{"metadata":{"annotations":{"WHAT":"true"}},"status":{"certificate":null}}`, "status"), []string{"approval", "patched", "status", "updated"}, []string{"ApprovalPatch", "Approved"}},
		{"update of the status", func(r request) (request, error) {
			r.Status.Conditions = append(r.Status.Conditions, condition("StatusUpdate"))
			return all.UpdateStatus(ctx, r, metav1.UpdateOptions{})
		}, []string{"approval", "patched", "status", "updated"}, []string{"ApprovalPatch", "Approved", "StatusUpdate"}},
	} {
		now, err := all.Get(ctx, "one", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tc.do(now)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		annotations := slices.Sorted(maps.Keys(got.Annotations))
		var conditions []string
		for _, c := range got.Status.Conditions {
			conditions = append(conditions, string(c.Type))
		}
		if !slices.Equal(annotations, tc.annotations) || !slices.Equal(conditions, tc.conditions) || got.Spec.SignerName != "example.com/other" {
			t.Errorf("%s: annotations %q, conditions %q, signer %q", tc.name, annotations, conditions, got.Spec.SignerName)
		}
		watched(t, w, watch.Modified, "one")
	}
	if err := all.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	watched(t, w, watch.Deleted, "one")
	if err := all.DeleteCollection(ctx, metav1.DeleteOptions{}, ours); err != nil {
		t.Error(err)
	}
	if list, err := all.List(ctx, ours); err != nil || len(list.Items) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

func accountOperations(t *testing.T, cfg *rest.Config) {
	ctx, core := t.Context(), corev1client.NewForConfigOrDie(cfg)
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "accounts"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	accounts := core.ServiceAccounts("accounts")
	w, err := accounts.Watch(ctx, metav1.ListOptions{LabelSelector: "kept=no"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	no := false
	made, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", Labels: map[string]string{"kept": "no"}}, AutomountServiceAccountToken: &no}, metav1.CreateOptions{})
	if err != nil || len(made.Secrets) != 0 {
		t.Fatalf("%+v %v", made, err)
	}
	watched(t, w, watch.Added, "robot")
	if _, err := accounts.Patch(ctx, "robot", types.StrategicMergePatchType, []byte(`{"automountServiceAccountToken":true}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	watched(t, w, watch.Modified, "robot")
	now, err := accounts.Get(ctx, "robot", metav1.GetOptions{})
	if err != nil || now.AutomountServiceAccountToken == nil || !*now.AutomountServiceAccountToken {
		t.Fatalf("%+v %v", now, err)
	}
	now.AutomountServiceAccountToken = &no
	if now, err = accounts.Update(ctx, now, metav1.UpdateOptions{}); err != nil || *now.AutomountServiceAccountToken {
		t.Errorf("%+v %v", now, err)
	}
	if list, err := core.ServiceAccounts("").List(ctx, metav1.ListOptions{LabelSelector: "kept=no"}); err != nil || len(list.Items) != 1 {
		t.Errorf("%v %v", list, err)
	}
	if secrets, err := core.Secrets("accounts").List(ctx, metav1.ListOptions{}); err != nil || len(secrets.Items) != 0 {
		t.Errorf("secrets for an account: %v %v", secrets, err)
	}
	if err := accounts.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "kept=no"}); err != nil {
		t.Error(err)
	}
	watched(t, w, watch.Deleted, "robot")
}

// mountedTokens: a pod gets a token unless it or its account declines.
func mountedTokens(t *testing.T, cfg *rest.Config) {
	ctx, core := t.Context(), corev1client.NewForConfigOrDie(cfg)
	yes, no := true, false
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mounts"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, mount := range map[string]*bool{"default-mount": nil, "mount": &yes, "no-mount": &no} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}, AutomountServiceAccountToken: mount}
		if _, err := core.ServiceAccounts("mounts").Create(ctx, account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for suffix, own := range map[string]*bool{"-default": nil, "-yes": &yes, "-no": &no} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + suffix}, Spec: corev1.PodSpec{
				ServiceAccountName: name, AutomountServiceAccountToken: own, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			}}
			got, err := core.Pods("mounts").Create(ctx, pod, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want := own == &yes || own == nil && mount != &no
			has := slices.ContainsFunc(got.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.MountPath == "/var/run/secrets/kubernetes.io/serviceaccount" && m.ReadOnly
			})
			if has != want || len(got.Spec.Volumes) > 0 != want {
				t.Errorf("%s: mounted %v, want %v: %+v", pod.Name, has, want, got.Spec.Volumes)
			}
		}
	}
}

// checkedByOthers: a client that may read the issuer's documents, as all service accounts may, can verify a
// token without asking the server about it.
func checkedByOthers(t *testing.T, cfg *rest.Config) {
	ctx, core := t.Context(), corev1client.NewForConfigOrDie(cfg)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"https://kubernetes.default.svc", "oidc-test"}}}
	eventually(t, "the default service account", func() bool { // a controller makes it
		_, err := core.ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	issued, err := core.ServiceAccounts("default").CreateToken(ctx, "default", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := rest.AnonymousClientConfig(cfg)
	own.BearerToken = issued.Status.Token
	account := corev1client.NewForConfigOrDie(own).RESTClient()
	const configuration, keys = "/.well-known/openid-configuration", "/openid/v1/jwks"
	jane := rest.CopyConfig(cfg)
	jane.Impersonate.UserName = "jane" // not an account, which all may read them
	if _, err := corev1client.NewForConfigOrDie(jane).RESTClient().Get().AbsPath(keys).DoRaw(ctx); !apierrors.IsForbidden(err) {
		t.Errorf("without being allowed to: %v", err)
	}
	var document struct {
		Issuer string
		Algs   []jose.SignatureAlgorithm `json:"id_token_signing_alg_values_supported"`
	}
	var set jose.JSONWebKeySet
	for path, into := range map[string]any{configuration: &document, keys: &set} {
		data, err := account.Get().AbsPath(path).SetHeader("Accept", "*/*").DoRaw(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatalf("%s: %v: %s", path, err, data)
		}
	}
	token, err := jwt.ParseSigned(issued.Status.Token, document.Algs)
	if err != nil {
		t.Fatal(err)
	}
	found := set.Key(token.Headers[0].KeyID)
	if len(found) != 1 {
		t.Fatalf("keys of %q: %v", token.Headers[0].KeyID, found)
	}
	if _, ok := found[0].Key.(crypto.PublicKey); !ok || !found[0].IsPublic() {
		t.Errorf("a key that is not public: %T", found[0].Key)
	}
	var claims jwt.Claims
	if err := token.Claims(found[0].Key, &claims); err != nil {
		t.Fatal(err)
	}
	err = claims.Validate(jwt.Expected{Issuer: document.Issuer, Subject: "system:serviceaccount:default:default", AnyAudience: jwt.Audience{"oidc-test"}, Time: time.Now()})
	if err != nil {
		t.Error(err)
	}
}
