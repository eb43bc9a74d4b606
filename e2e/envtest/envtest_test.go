// Package envtest runs controller-runtime's own envtest against this server's programs,
// found by KUBEBUILDER_ASSETS alone.
package envtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// patience bounds how long a busy machine may take for anything.
const patience = 2 * time.Minute

var widgets = schema.GroupVersionKind{Group: "example.test", Version: "v1", Kind: "Widget"}

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(run(m))
}

// run lays out the programs of the binary that ROWLOCK_BINARY names.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "assets-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	out, err := exec.Command(os.Getenv("ROWLOCK_BINARY"), "envtest", "setup", "--print=path", dir).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != dir {
		fmt.Fprintf(os.Stderr, "ROWLOCK_BINARY envtest setup: %v\n%s\n", err, out)
		return 1
	}
	os.Setenv("KUBEBUILDER_ASSETS", dir)
	return m.Run()
}

// environment starts a control plane with the definition of widgets.
func environment(t *testing.T, change func(*envtest.Environment)) (*envtest.Environment, *rest.Config) {
	t.Helper()
	keep := true
	env := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.test"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: widgets.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: widgets.Kind, ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: widgets.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
			}},
		},
	}}}
	if change != nil {
		change(env)
	}
	if release := os.Getenv("ROWLOCK_RELEASE"); release != "" {
		env.ControlPlane.GetAPIServer().Configure().Append("emulated-version", release)
	}
	began := time.Now()
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %v", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		began := time.Now()
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("stopped in %v", time.Since(began).Round(time.Millisecond))
	})
	return env, cfg
}

func widget(name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(widgets)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := so()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// hook returns where a service of a webhook would be.
func hook(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "hooks", Namespace: "default", Path: &path}}
}

var onWidgets = []admissionregistrationv1.RuleWithOperations{{
	Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
	Rule:       admissionregistrationv1.Rule{APIGroups: []string{widgets.Group}, APIVersions: []string{"*"}, Resources: []string{"widgets"}},
}}

func withWebhooks(env *envtest.Environment) {
	none := admissionregistrationv1.SideEffectClassNone
	env.WebhookInstallOptions = envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionregistrationv1.MutatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "defaults.example.test", ClientConfig: hook("/default"), Rules: onWidgets, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			}},
		}},
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "rules"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "rules.example.test", ClientConfig: hook("/validate"), Rules: onWidgets, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			}},
		}},
	}
}

// TestManager runs a manager with a reconciler and two webhooks, as operators do.
func TestManager(t *testing.T) {
	env, cfg := environment(t, withWebhooks)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: env.WebhookInstallOptions.LocalServingHost, Port: env.WebhookInstallOptions.LocalServingPort, CertDir: env.WebhookInstallOptions.LocalServingCertDir,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr.GetWebhookServer().Register("/default", &webhook.Admission{Handler: admission.HandlerFunc(setColour)})
	mgr.GetWebhookServer().Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(refuseUgly)})
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(widgets)
	if err := ctrl.NewControllerManagedBy(mgr).For(kind).Owns(&corev1.ConfigMap{}).Complete(&reconciler{mgr.GetClient(), mgr.GetScheme()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the webhooks serve", func() error { return mgr.GetWebhookServer().StartedChecker()(&http.Request{}) })
	if err := c.Create(ctx, widget("ugly", map[string]any{"colour": "ugly"})); err == nil || !strings.Contains(err.Error(), "nobody wants that") {
		t.Errorf("what a webhook refuses: %v", err)
	}
	w := widget("one", map[string]any{})
	if err := c.Create(ctx, w); err != nil {
		t.Fatal(err)
	}
	if colour, _, _ := unstructured.NestedString(w.Object, "spec", "colour"); colour != "blue" {
		t.Errorf("a webhook has not set the colour: %v", w.Object)
	}
	made := &corev1.ConfigMap{}
	eventually(t, "the reconciler makes a ConfigMap", func() error {
		return c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "of-one"}, made)
	})
	if made.Data["colour"] != "blue" || !metav1.IsControlledBy(made, w) {
		t.Errorf("the ConfigMap: %v %v", made.Data, made.OwnerReferences)
	}
	if err := c.Delete(ctx, made); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the reconciler makes it again", func() error {
		again := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(made), again); err != nil {
			return err
		}
		if again.UID == made.UID {
			return errors.New("it is the old one")
		}
		return nil
	})
	eventually(t, "the reconciler reports", func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(w.Object, "status", "phase"); phase != "Ready" {
			return fmt.Errorf("phase %q", phase)
		}
		return nil
	})
}

// reconciler gives each widget a ConfigMap.
type reconciler struct {
	client.Client
	scheme *runtime.Scheme
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := widget(req.Name, nil)
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: "of-" + req.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		colour, _, _ := unstructured.NestedString(w.Object, "spec", "colour")
		cm.Data = map[string]string{"colour": colour}
		return controllerutil.SetControllerReference(w, cm, r.scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := unstructured.SetNestedField(w.Object, "Ready", "status", "phase"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Update(ctx, w)
}

func setColour(_ context.Context, req admission.Request) admission.Response {
	var w unstructured.Unstructured
	if err := json.Unmarshal(req.Object.Raw, &w.Object); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if _, found, _ := unstructured.NestedString(w.Object, "spec", "colour"); !found {
		if err := unstructured.SetNestedField(w.Object, "blue", "spec", "colour"); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	text, err := json.Marshal(w.Object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, text)
}

func refuseUgly(_ context.Context, req admission.Request) admission.Response {
	if strings.Contains(string(req.Object.Raw), `"colour":"ugly"`) {
		return admission.Denied("nobody wants that")
	}
	return admission.Allowed("")
}

// TestUsers: a user of the environment may do what roles allow, and nothing else.
func TestUsers(t *testing.T) {
	env, cfg := environment(t, nil)
	admin, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	user, err := env.AddUser(envtest.User{Name: "alice", Groups: []string{"team"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	alice, err := client.New(user.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := alice.Create(t.Context(), widget("hers", nil)); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v", err)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{widgets.Group}, Resources: []string{"widgets"}, Verbs: []string{"create"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "widgets"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team"}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "with a role", func() error { return client.IgnoreAlreadyExists(alice.Create(t.Context(), widget("hers", nil))) })
	if err := alice.Delete(t.Context(), widget("hers", nil)); !apierrors.IsForbidden(err) {
		t.Errorf("what the role has not: %v", err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, err := kubectl.Run("get", "widgets")
	if err == nil {
		t.Fatal("kubectl lists what alice may not")
	}
	if text, err := io.ReadAll(stderr); err != nil || !strings.Contains(string(text), "Forbidden") {
		t.Errorf("kubectl: %v %s", err, text)
	}
}

// TestAPIServerAgain ends the API server alone. Another one finds the objects where the
// etcd keeps them.
func TestAPIServerAgain(t *testing.T) {
	env, cfg := environment(t, nil)
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), widget("kept", map[string]any{"colour": "red"})); err != nil {
		t.Fatal(err)
	}
	server := env.ControlPlane.GetAPIServer()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server.SecureServing.Authn = nil // its files are gone with the folder of certificates
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	user, err := env.AddUser(envtest.User{Name: "again", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = client.New(user.Config(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	w := widget("kept", nil)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	if colour, _, _ := unstructured.NestedString(w.Object, "spec", "colour"); colour != "red" {
		t.Errorf("what was kept: %v", w.Object)
	}
}

// TestControllers: one variable turns on the controllers that such environments lack.
func TestControllers(t *testing.T) {
	t.Setenv("ROWLOCK_ENVTEST_CONTROLLERS", "gc,namespace")
	_, cfg := environment(t, nil)
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}
	inside := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "going", Name: "inside"}}
	owner := widget("owner", nil)
	for _, o := range []client.Object{ns, inside, owner} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owned", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, widgets)}}}
	if err := c.Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{ns, owner} {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []client.Object{ns, inside, owned} {
		eventually(t, o.GetName()+" goes", func() error {
			err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %v", err)
		})
	}
}
