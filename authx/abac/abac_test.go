package abac_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/abac"
)

func policy(spec string) string {
	return `{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{` + spec + `}}`
}

func read(t *testing.T, lines ...string) *abac.Authorizer {
	t.Helper()
	z, err := abac.Read(strings.NewReader(strings.Join(lines, "\n")), "policies")
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func who(name string, groups ...string) *authx.Identity {
	return &authx.Identity{Name: name, Groups: append(groups, authx.GroupAuthenticated)}
}

func resource(user *authx.Identity, verb, namespace, group, resource, sub string) *authx.Attributes {
	return &authx.Attributes{User: user, Verb: verb, Namespace: namespace, APIGroup: group, Resource: resource, Subresource: sub, ResourceRequest: true}
}

func path(user *authx.Identity, verb, path string) *authx.Attributes {
	return &authx.Attributes{User: user, Verb: verb, Path: path}
}

func TestAuthorize(t *testing.T) {
	bob, stranger := who("bob", "devs"), &authx.Identity{Name: authx.Anonymous, Groups: []string{authx.GroupUnauthenticated}}
	for _, tc := range []struct {
		name, line string
		asked      *authx.Attributes
		want       bool
	}{
		{"user", policy(`"user":"bob","namespace":"x","resource":"pods"`), resource(bob, "create", "x", "", "pods", ""), true},
		{"other user", policy(`"user":"alice","namespace":"x","resource":"pods"`), resource(bob, "create", "x", "", "pods", ""), false},
		{"group", policy(`"group":"devs","namespace":"x","resource":"pods"`), resource(bob, "create", "x", "", "pods", ""), true},
		{"both", policy(`"user":"bob","group":"devs","namespace":"x","resource":"pods"`), resource(bob, "create", "x", "", "pods", ""), true},
		{"user and not group", policy(`"user":"bob","group":"ops","namespace":"x","resource":"pods"`), resource(bob, "create", "x", "", "pods", ""), false},
		{"group and not user", policy(`"user":"alice","group":"devs","namespace":"x","resource":"pods"`), resource(bob, "create", "x", "", "pods", ""), false},
		{"nobody named", policy(`"namespace":"*","resource":"*","apiGroup":"*"`), resource(bob, "get", "x", "", "pods", ""), false},
		{"any user", policy(`"user":"*","namespace":"x","resource":"pods"`), resource(bob, "create", "x", "", "pods", ""), true},
		{"any user is authenticated", policy(`"user":"*","namespace":"x","resource":"pods"`), resource(stranger, "get", "x", "", "pods", ""), false},
		{"any group", policy(`"group":"*","namespace":"x","resource":"pods"`), resource(bob, "create", "x", "", "pods", ""), true},
		{"strangers", policy(`"group":"system:unauthenticated","nonResourcePath":"/version"`), path(stranger, "get", "/version"), true},
		{"no user", policy(`"user":"bob","namespace":"x","resource":"pods"`), resource(nil, "get", "x", "", "pods", ""), false},
		{"subresource", policy(`"user":"bob","namespace":"x","resource":"pods"`), resource(bob, "get", "x", "", "pods", "log"), true},
		{"resource with subresource", policy(`"user":"bob","namespace":"x","resource":"pods/log"`), resource(bob, "get", "x", "", "pods", "log"), false},
		{"any namespace", policy(`"user":"bob","namespace":"*","resource":"nodes"`), resource(bob, "get", "", "", "nodes", ""), true},
		{"one namespace, cluster scope", policy(`"user":"bob","namespace":"x","resource":"pods"`), resource(bob, "list", "", "", "pods", ""), false},
		{"no namespace, cluster scope", policy(`"user":"bob","resource":"nodes"`), resource(bob, "list", "", "", "nodes", ""), true},
		{"no namespace, one namespace", policy(`"user":"bob","resource":"pods"`), resource(bob, "list", "x", "", "pods", ""), false},
		{"core group alone", policy(`"user":"bob","namespace":"x","resource":"*"`), resource(bob, "list", "x", "apps", "deployments", ""), false},
		{"any group of the API", policy(`"user":"bob","namespace":"x","resource":"*","apiGroup":"*"`), resource(bob, "list", "x", "apps", "deployments", ""), true},
		{"one group of the API", policy(`"user":"bob","namespace":"x","resource":"*","apiGroup":"apps"`), resource(bob, "list", "x", "apps", "deployments", ""), true},
		{"reading", policy(`"user":"bob","namespace":"x","resource":"pods","readonly":true`), resource(bob, "watch", "x", "", "pods", ""), true},
		{"reading, not writing", policy(`"user":"bob","namespace":"x","resource":"pods","readonly":true`), resource(bob, "patch", "x", "", "pods", ""), false},
		{"path", policy(`"user":"bob","nonResourcePath":"/healthz"`), path(bob, "get", "/healthz"), true},
		{"path below", policy(`"user":"bob","nonResourcePath":"/healthz"`), path(bob, "get", "/healthz/ping"), false},
		{"tree", policy(`"user":"bob","nonResourcePath":"/tree/*"`), path(bob, "post", "/tree/a/b"), true},
		{"tree with nothing below", policy(`"user":"bob","nonResourcePath":"/tree/*"`), path(bob, "get", "/tree/"), true},
		{"tree itself", policy(`"user":"bob","nonResourcePath":"/tree/*"`), path(bob, "get", "/tree"), false},
		{"any path", policy(`"user":"bob","nonResourcePath":"*"`), path(bob, "get", "/x"), true},
		{"reading paths", policy(`"user":"bob","nonResourcePath":"*","readonly":true`), path(bob, "post", "/x"), false},
		{"reading paths by GET", policy(`"user":"bob","nonResourcePath":"*","readonly":true`), path(bob, "get", "/x"), true},
		{"reading paths by HEAD", policy(`"user":"bob","nonResourcePath":"*","readonly":true`), path(bob, "head", "/x"), true},
		{"a path cannot be listed", policy(`"user":"bob","nonResourcePath":"*","readonly":true`), path(bob, "list", "/x"), false},
		{"a path cannot be watched", policy(`"user":"bob","nonResourcePath":"*","readonly":true`), path(bob, "watch", "/x"), false},
		{"legacy, reading paths", `{"user":"bob","readonly":true}`, path(bob, "head", "/x"), true},
		{"legacy, a path cannot be listed", `{"user":"bob","readonly":true}`, path(bob, "list", "/x"), false},
		{"a resource has no HEAD", policy(`"user":"bob","namespace":"x","resource":"pods","readonly":true`), resource(bob, "head", "x", "", "pods", ""), false},
		{"paths are no resources", policy(`"user":"bob","nonResourcePath":"*"`), resource(bob, "get", "x", "", "pods", ""), false},
		{"resources are no paths", policy(`"user":"bob","resource":"*","namespace":"*","apiGroup":"*"`), path(bob, "get", "/x"), false},
		{"legacy", `{"user":"bob"}`, resource(bob, "create", "x", "apps", "deployments", ""), true},
		{"legacy paths", `{"user":"bob"}`, path(bob, "post", "/x"), true},
		{"legacy of a namespace", `{"user":"bob","namespace":"x"}`, resource(bob, "create", "y", "", "pods", ""), false},
		{"legacy of a namespace, paths", `{"user":"bob","namespace":"x"}`, path(bob, "get", "/x"), false},
		{"legacy for all", `{"readonly":true}`, resource(bob, "get", "x", "", "pods", ""), true},
		{"legacy for all is for the authenticated", `{"readonly":true}`, resource(stranger, "get", "x", "", "pods", ""), false},
		{"legacy with its version", `{"apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy","group":"*"}`, path(bob, "get", "/x"), true},
		{"another spelling", `{"apiVersion":"abac.authorization.k8s.io/v1beta1","kind":"Policy","spec":{"user":"bob","nonResourcePath":"*"}}`, path(bob, "get", "/x"), true},
		{"fields have one spelling", policy(`"User":"bob","nonResourcePath":"*"`), path(bob, "get", "/x"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, reason, err := read(t, "# a comment", "", "  # another", tc.line).Authorize(t.Context(), tc.asked)
			if (d == authx.Allow) != tc.want || d == authx.Deny || err != nil {
				t.Fatal(d, reason, err)
			}
			if want := map[bool]string{false: "No policy matched."}[tc.want]; reason != want {
				t.Fatalf("reason %q, want %q", reason, want)
			}
		})
	}
}

func TestRulesFor(t *testing.T) {
	z := read(t,
		policy(`"user":"bob","namespace":"x","resource":"pods","readonly":true`),
		policy(`"user":"bob","namespace":"*","resource":"secrets","apiGroup":"*"`),
		policy(`"user":"bob","namespace":"y","resource":"jobs"`),
		policy(`"user":"alice","namespace":"x","resource":"jobs"`),
		`{"user":"bob","readonly":true}`)
	resources, paths, incomplete, err := z.RulesFor(t.Context(), who("bob"), "x")
	reading := []string{"get", "list", "watch"}
	if want := []authx.ResourceRule{
		{Verbs: reading, APIGroups: []string{""}, Resources: []string{"pods"}},
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"secrets"}},
		{Verbs: reading, APIGroups: []string{"*"}, Resources: []string{"*"}},
	}; !reflect.DeepEqual(resources, want) {
		t.Errorf("resources %v", resources)
	}
	if want := []authx.NonResourceRule{{Verbs: []string{"get", "head"}, NonResourceURLs: []string{"*"}}}; !reflect.DeepEqual(paths, want) {
		t.Errorf("paths %v", paths)
	}
	if incomplete || err != nil || z.Legacy != 1 {
		t.Error(incomplete, err, z.Legacy)
	}
}

func TestBadLines(t *testing.T) {
	good := policy(`"user":"bob","nonResourcePath":"*"`)
	for line, want := range map[string]string{
		`{"user":`:       "couldn't get version/kind; json parse error: unexpected end of JSON input",
		`nonsense`:       "couldn't get version/kind; json parse error: invalid character 'o' in literal null (expecting 'u')",
		`["a"]`:          "couldn't get version/kind; json parse error: json: cannot unmarshal array",
		`{"user":5}`:     "cannot unmarshal number into Go struct field",
		`{"kind":"Cat"}`: "Object 'apiVersion' is missing",
		`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","spec":{}}`:  "Object 'Kind' is missing",
		`{"apiVersion":"abac.authorization.kubernetes.io/v2","kind":"Policy"}`: `no such kind is registered for its version`,
		policy(`"user":{}`): "cannot unmarshal object into Go struct field",
	} {
		_, err := abac.Read(strings.NewReader(good+"\n\n"+line+"\n"+good), "f")
		if prefix := "error reading policy file f, line 3: " + want; err == nil || !strings.HasPrefix(strings.Replace(err.Error(), "json: "+want, want, 1), prefix) {
			t.Errorf("%s: %v, want %s", line, err, prefix)
		}
	}
	if _, err := abac.Read(strings.NewReader(`{"user":"`+strings.Repeat("x", 2<<20)), "f"); err == nil || !strings.HasPrefix(err.Error(), "error reading policy file f: ") {
		t.Error(err)
	}
}

// TestOtherFiles: errors do not quote files given by mistake.
func TestOtherFiles(t *testing.T) {
	for _, line := range []string{"s3cret,alice,1", `"s3cret`, "token: s3cret", `{"kind":"Config","token":"s3cret"}`, `{"apiVersion":"v1","token":"s3cret"}`, `{"user":["s3cret"]}`, policy(`"user":["s3cret"]`)} {
		if _, err := abac.Read(strings.NewReader(line), "f"); err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "f, line 1: ") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestMisspelt: unknown fields are accepted, as on a stock server, and logged:
// without them a policy allows more than it was meant to.
func TestMisspelt(t *testing.T) {
	z := read(t,
		policy(`"user":"bob","namespace":"x","resource":"pods","readOnly":true`),
		`{"userr":"bob"}`,
		policy(`"user":"bob","user":"eve","nonResourcePath":"*"`),
		`{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","metadata":{"name":"n"},"spec":{"user":"bob","readonly":true}}`,
		`{"user":"bob","apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy"}`)
	want := []string{`line 1: unknown field "spec.readOnly"`, `line 2: unknown field "userr"`, `line 3: duplicate field "spec.user"`}
	if !reflect.DeepEqual(z.Remarks, want) || len(z.Policies) != 5 {
		t.Errorf("%q, %d policies", z.Remarks, len(z.Policies))
	}
}

func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policies")
	if _, err := abac.Load(file); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte(policy(`"user":"bob","nonResourcePath":"*"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	if z, err := abac.Load(file); err != nil || len(z.Policies) != 1 {
		t.Error(z, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(policy(`"user":"bob","nonResourcePath":"/a/*"`) + "\n# x\n{}")
	f.Add(`{"user":"bob","namespace":"x"}`)
	f.Add(`{"apiVersion":"abac.authorization.kubernetes.io/v0","kind":"Policy","group":"*"}`)
	nobody := &authx.Identity{Name: "nobody in any file"}
	f.Fuzz(func(t *testing.T, text string) {
		z, err := abac.Read(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		for _, a := range []*authx.Attributes{path(nobody, "get", "/x"), resource(nobody, "get", "x", "", "pods", "")} {
			if d, _, _ := z.Authorize(t.Context(), a); d != authx.NoOpinion {
				t.Fatal("a user who is neither named nor in a group is allowed something")
			}
		}
	})
}
