package authzconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx/authzconfig"
	"github.com/rowlock/rowlock/authx/remote/remotetest"
)

const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"

// hook returns a webhook with the settings given, and the required ones that are not.
func hook(kubeconfig string, settings ...string) string {
	all := map[string]string{
		"timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": "Deny",
		"connectionInfo": "{type: KubeConfigFile, kubeConfigFile: " + kubeconfig + "}",
	}
	for _, s := range settings {
		k, v, _ := strings.Cut(s, ": ")
		all[k] = v
	}
	var parts []string
	for k, v := range all {
		if v != "" {
			parts = append(parts, k+": "+v)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func kubeconfig(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(remotetest.Text("https://hook.example/", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestParse: the messages are those of a stock server.
func TestParse(t *testing.T) {
	file := kubeconfig(t)
	one := func(settings ...string) string {
		return head + "authorizers: [{type: Webhook, name: x, webhook: " + hook(file, settings...) + "}]"
	}
	list := func(entries ...string) string { return head + "authorizers: [" + strings.Join(entries, ", ") + "]" }
	conditions := func(version string, expressions ...string) string {
		var texts []string
		for _, e := range expressions {
			texts = append(texts, fmt.Sprintf("{expression: %q}", e))
		}
		return one("matchConditionSubjectAccessReviewVersion: "+version, "matchConditions: ["+strings.Join(texts, ", ")+"]")
	}
	var many []string
	for i := range 65 {
		many = append(many, fmt.Sprintf("%d == 1", i))
	}
	for _, tc := range []struct{ text, want string }{
		{one(), ""},
		{strings.Replace(one(), "/v1\n", "/v1beta1\n", 1), ""},
		{strings.Replace(one(), "/v1\n", "/v1alpha1\n", 1), ""},
		{list("{type: Node, name: node}", "{type: RBAC, name: rbac}", "{type: ABAC, name: abac}", "{type: AlwaysAllow, name: alwaysallow}", "{type: AlwaysDeny, name: alwaysdeny}"), ""},
		{list("{type: Webhook, name: a, webhook: "+hook(file)+"}", "{type: Webhook, name: b, webhook: "+hook(file)+"}"), ""},
		{conditions("v1", "request.user == 'x'", many[1]), ""},

		{"", "authorizers: Required value: at least one authorization mode must be defined"},
		{head, "authorizers: Required value: at least one authorization mode must be defined"},
		{strings.Replace(one(), "/v1\n", "/v2\n", 1), `failed to load AuthorizationConfiguration from file: no kind "AuthorizationConfiguration" is registered for version "apiserver.config.k8s.io/v2"`},
		{list("{type: RBAC, name: rbac, foo: 1}"), `failed to load AuthorizationConfiguration from file: strict decoding error: unknown field "authorizers[0].foo"`},
		{one("timeout: soon"), `failed to load AuthorizationConfiguration from file: time: invalid duration "soon"`},
		{list("{name: x}"), "authorizers[0].type: Required value"},
		{list("{type: Foo, name: x}"), `authorizers[0].type: Unsupported value: "Foo": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"`},
		{list("{type: RBAC}"), "authorizers[0].name: Required value"},
		{list("{type: RBAC, name: Bad Name}"), `authorizers[0].name: Invalid value: "Bad Name": authorizer name is invalid: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{list("{type: Webhook, name: x, webhook: "+hook(file)+"}", "{type: Webhook, name: x, webhook: "+hook(file)+"}"), `authorizers[1].name: Duplicate value: "x"`},
		{list("{type: RBAC, name: rbac}", "{type: RBAC, name: more}"), `authorizers[1].type: Duplicate value: "RBAC"`},
		{list("{type: RBAC, name: r}"), "expected name rbac for authorizer RBAC instead of r"},
		{list("{type: RBAC, name: r}", "{type: Node, name: other}"), "[expected name rbac for authorizer RBAC instead of r, expected name node for authorizer Node instead of other]"},
		{list("{type: Webhook, name: x}"), "authorizers[0].webhook: Required value: required when type=Webhook"},
		{list("{type: RBAC, name: rbac, webhook: " + hook(file) + "}"), `authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook`},
		{one("timeout: "), "authorizers[0].timeout: Required value"},
		{one("timeout: 31s"), `authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s`},
		{one("timeout: -1s"), `authorizers[0].timeout: Invalid value: "-1s": must be > 0s and <= 30s`},
		{one("authorizedTTL: -1s"), `authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s`},
		{one("unauthorizedTTL: -1s"), `authorizers[0].unauthorizedTTL: Invalid value: "-1s": must be > 0s`},
		{one("subjectAccessReviewVersion: "), "authorizers[0].subjectAccessReviewVersion: Required value"},
		{one("subjectAccessReviewVersion: v2"), `authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1"`},
		{conditions("v1beta1", "true"), `authorizers[0].matchConditionSubjectAccessReviewVersion: Unsupported value: "v1beta1": supported values: "v1"`},
		{conditions("", "true"), "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified"},
		{one("failurePolicy: "), "authorizers[0].failurePolicy: Required value"},
		{one("failurePolicy: Allow"), `authorizers[0].failurePolicy: Unsupported value: "Allow": supported values: "NoOpinion", "Deny"`},
		{one("connectionInfo: {}"), "authorizers[0].connectionInfo.type: Required value"},
		{one("connectionInfo: {type: Foo}"), `authorizers[0].connectionInfo.type: Unsupported value: "Foo": supported values: "InClusterConfig", "KubeConfigFile"`},
		{one("connectionInfo: {type: KubeConfigFile}"), "authorizers[0].connectionInfo.kubeConfigFile: Required value"},
		{one("connectionInfo: {type: KubeConfigFile, kubeConfigFile: a/b}"), `authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "a/b": must be an absolute path`},
		{one("connectionInfo: {type: KubeConfigFile, kubeConfigFile: /none}"), `authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/none": error loading file: stat /none: no such file or directory`},
		{one("connectionInfo: {type: KubeConfigFile, kubeConfigFile: /}"), `authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/": must be a regular file`},
		{one("connectionInfo: {type: InClusterConfig, kubeConfigFile: /x}"), `[authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/x": can only be set when type=KubeConfigFile, authorizers[0].connectionInfo.type: Invalid value: "InClusterConfig": the API server itself cannot use the configuration of a pod]`},
		{conditions("v1", ""), "authorizers[0].matchConditions[0].expression: Required value"},
		{conditions("v1", "1 +"), `authorizers[0].matchConditions[0].expression: Invalid value: "1 +": compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>'`},
		{conditions("v1", "'x'"), `authorizers[0].matchConditions[0].expression: Invalid value: "'x'": must evaluate to bool but got string`},
		{conditions("v1", "true", "true"), `authorizers[0].matchConditions[1].expression: Duplicate value: "true"`},
		{conditions("v1", many...), "authorizers[0].matchConditions: Too many: 65: must have at most 64 items"},
	} {
		c, err := (authzconfig.Rules{Selectors: true}).Parse([]byte(tc.text))
		if tc.want == "" && (err != nil || len(c.Authorizers) == 0) || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want) || !strings.Contains(tc.want, "compilation") && err.Error() != tc.want) {
			t.Errorf("%s\n%v\nwant %s", tc.text, err, tc.want)
		}
	}
	if _, err := (authzconfig.Rules{}).Parse([]byte(conditions("v1", "has(request.resourceAttributes.labelSelector)"))); err == nil {
		t.Error("selectors without their gate")
	}
}

func FuzzParse(f *testing.F) {
	file := kubeconfig(f)
	f.Add([]byte(head + "authorizers: [{type: Webhook, name: x, webhook: " + hook(file) + "}]"))
	f.Add([]byte(head + "authorizers: [{type: RBAC, name: rbac}]"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := (authzconfig.Rules{Selectors: true}).Parse(text)
		if err != nil {
			return
		}
		for _, a := range c.Authorizers {
			if a.Name == "" || (a.Type == authzconfig.TypeWebhook) != (a.Webhook != nil) {
				t.Fatalf("%+v", a)
			}
		}
	})
}
