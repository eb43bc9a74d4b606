package rbac_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/rbac"
)

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// rule reads "verbs groups resources names", each with commas; "core" is the core group.
func rule(text string) rbacv1.PolicyRule {
	f := append(strings.Fields(text), "", "", "")
	groups := list(f[1])
	for i := range groups {
		if groups[i] == "core" {
			groups[i] = ""
		}
	}
	return rbacv1.PolicyRule{Verbs: list(f[0]), APIGroups: groups, Resources: list(f[2]), ResourceNames: list(f[3])}
}

// paths reads "verbs paths".
func paths(text string) rbacv1.PolicyRule {
	verbs, urls, _ := strings.Cut(text, " ")
	return rbacv1.PolicyRule{Verbs: list(verbs), NonResourceURLs: list(urls)}
}

// resourceName reads "verb group resource[/sub] name".
func resourceName(text string) *authx.Attributes {
	f := append(strings.Fields(text), "", "")
	resource, sub, _ := strings.Cut(f[2], "/")
	return &authx.Attributes{Verb: f[0], APIGroup: strings.TrimPrefix(f[1], "core"), Resource: resource, Subresource: sub, Name: f[3], ResourceRequest: true}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule rbacv1.PolicyRule
		yes  []string
		no   []string
	}{
		{rule("get core pods"), []string{"get core pods", "get core pods x"}, []string{"list core pods", "get apps pods", "get core pods/log", "get core services", "GET core pods", "get core Pods"}},
		{rule("* core pods"), []string{"get core pods", "impersonate core pods x"}, []string{"get core pods/log"}},
		{rule("get * pods"), []string{"get core pods", "get apps pods"}, []string{"get core nodes"}},
		{rule("get core *"), []string{"get core pods", "get core pods/log x", "get core nodes/proxy"}, []string{"get apps pods", "list core pods"}},
		{rule("get core pods/log"), []string{"get core pods/log x"}, []string{"get core pods x", "get core pods/status", "get core log"}},
		{rule("update apps */scale"), []string{"update apps deployments/scale x", "update apps */scale"}, []string{"update apps deployments", "update apps scale", "update apps deployments/status", "update apps deployments/xscale"}},
		{rule("get core pods/*"), nil, []string{"get core pods/log", "get core pods"}},
		{rule("get,list core secrets a,b"), []string{"get core secrets a", "list core secrets b"}, []string{"get core secrets c", "get core secrets", "list core secrets"}},
		{rule("get core,apps pods,deployments"), []string{"get core deployments", "get apps pods"}, []string{"get batch jobs"}},
		{rule("get core pods/"), nil, []string{"get core pods"}},
		{rule("get core /log"), nil, []string{"get core pods/log"}},
		{rule("get"), nil, []string{"get core pods"}},
		{paths("get /healthz"), []string{"get /healthz"}, []string{"post /healthz", "get /healthz/", "get /healthz/etcd", "get /healthzz"}},
		{paths("get /healthz/*"), []string{"get /healthz/etcd", "get /healthz/"}, []string{"get /healthz", "get /healthzx"}},
		{paths("get /a*,/b"), []string{"get /a", "get /ab/c", "get /b"}, []string{"get /b/a", "get /"}},
		{paths("* *"), []string{"get /", "delete /x/y"}, nil},
		{paths("get /a**"), []string{"get /ab"}, []string{"get /b"}},
		{paths("get /*/b"), []string{"get /*/b"}, []string{"get /a/b"}},
	} {
		r := rbac.New()
		r.SetRole("", "r", []rbacv1.PolicyRule{c.rule})
		r.SetBinding("", "b", rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, []rbacv1.Subject{{Kind: "User", Name: "jan"}})
		check := func(text string, want bool) {
			t.Helper()
			a := &authx.Attributes{}
			if verb, path, _ := strings.Cut(text, " "); strings.HasPrefix(path, "/") {
				a.Verb, a.Path = verb, path
			} else {
				a = resourceName(text)
			}
			a.User = &authx.Identity{Name: "jan"}
			if d, _, err := r.Authorize(t.Context(), a); (d == authx.Allow) != want || d == authx.Deny || err != nil {
				t.Errorf("%+v, asked %q: %v %v", c.rule, text, d, err)
			}
			if got := rbac.RuleAllows(a, &c.rule); got != want {
				t.Errorf("RuleAllows(%+v, %q) = %v", c.rule, text, got)
			}
		}
		for _, text := range c.yes {
			check(text, true)
		}
		for _, text := range c.no {
			check(text, false)
		}
	}
}

func TestSubjectsAndScopes(t *testing.T) {
	r := rbac.New()
	all := []rbacv1.PolicyRule{rule("get core pods")}
	r.SetRole("", "reader", all)
	r.SetRole("a", "reader", all)
	cluster, local := rbacv1.RoleRef{Kind: "ClusterRole", Name: "reader"}, rbacv1.RoleRef{Kind: "Role", Name: "reader"}
	r.SetBinding("", "everywhere", cluster, []rbacv1.Subject{{Kind: "User", Name: "root"}, {Kind: "ServiceAccount", Name: "sa", Namespace: "x"}, {Kind: "ServiceAccount", Name: "lost"}})
	r.SetBinding("a", "here", local, []rbacv1.Subject{{Kind: "Group", Name: "devs"}, {Kind: "User", Name: "jan"}, {Kind: "ServiceAccount", Name: "own"}})
	r.SetBinding("b", "cluster-role-here", cluster, []rbacv1.Subject{{Kind: "User", Name: "jan"}, {Kind: "Robot", Name: "jan"}})
	r.SetBinding("c", "dangling", local, []rbacv1.Subject{{Kind: "User", Name: "jan"}})
	r.SetBinding("c", "dangling2", rbacv1.RoleRef{Kind: "ClusterRole", Name: "none"}, []rbacv1.Subject{{Kind: "Group", Name: "devs"}})
	for _, c := range []struct {
		user, groups, namespace string
		reason                  string // of an allowance, with "!" in front of a refusal
	}{
		{"root", "", "", `RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "reader" to User "root"`},
		{"root", "", "zzz", `RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "reader" to User "root"`},
		{"system:serviceaccount:x:sa", "", "a", `RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "reader" to ServiceAccount "sa/x"`},
		{"system:serviceaccount::lost", "", "a", "!"},
		{"jan", "", "a", `RBAC: allowed by RoleBinding "here/a" of Role "reader" to User "jan"`},
		{"jan", "devs", "a", `RBAC: allowed by RoleBinding "here/a" of Role "reader" to Group "devs"`},
		{"system:serviceaccount:a:own", "", "a", `RBAC: allowed by RoleBinding "here/a" of Role "reader" to ServiceAccount "own/a"`},
		{"system:serviceaccount:b:own", "", "a", "!"},
		{"jan", "", "b", `RBAC: allowed by RoleBinding "cluster-role-here/b" of ClusterRole "reader" to User "jan"`},
		{"jan", "", "", "!"},
		{"devs", "", "a", "!"},
		{"eva", "jan", "a", "!"},
		{"jan", "", "c", `!RBAC: role.rbac.authorization.k8s.io "reader" not found`},
		{"jan", "devs", "c", `!RBAC: [role.rbac.authorization.k8s.io "reader" not found, clusterrole.rbac.authorization.k8s.io "none" not found]`},
	} {
		a := resourceName("get core pods")
		a.User, a.Namespace = &authx.Identity{Name: c.user, Groups: list(c.groups)}, c.namespace
		d, reason, err := r.Authorize(t.Context(), a)
		want, refused := strings.CutPrefix(c.reason, "!")
		if (d == authx.NoOpinion) != refused || reason != want || err != nil {
			t.Errorf("%+v: %v %q %v", c, d, reason, err)
		}
	}
	if d, _, err := r.Authorize(t.Context(), resourceName("get core pods")); d != authx.NoOpinion || err != nil {
		t.Errorf("nobody: %v %v", d, err)
	}
}

// A change counts when its method has returned, whatever had been asked before.
func TestChanges(t *testing.T) {
	r := rbac.New()
	may := func(step string, want bool) {
		t.Helper()
		a := resourceName("get core pods")
		a.User, a.Namespace = &authx.Identity{Name: "jan"}, "a"
		if d, reason, _ := r.Authorize(t.Context(), a); (d == authx.Allow) != want {
			t.Errorf("%s: %v %q", step, d, reason)
		}
	}
	ref := rbacv1.RoleRef{Kind: "Role", Name: "r"}
	jan, eva := []rbacv1.Subject{{Kind: "User", Name: "jan"}, {Kind: "User", Name: "jan"}}, []rbacv1.Subject{{Kind: "User", Name: "eva"}}
	may("empty", false)
	r.SetBinding("a", "b", ref, jan)
	may("no role yet", false)
	r.SetRole("a", "r", []rbacv1.PolicyRule{rule("get core pods")})
	may("role came", true)
	r.SetRole("a", "r", []rbacv1.PolicyRule{rule("list core pods")})
	may("role changed", false)
	r.SetRole("a", "r", []rbacv1.PolicyRule{rule("get core pods")})
	may("role changed back", true)
	r.SetRole("b", "r", nil)
	may("a role of another namespace", true)
	r.DeleteRole("a", "r")
	may("role gone", false)
	r.SetRole("a", "r", []rbacv1.PolicyRule{rule("get core pods")})
	may("role again", true)
	r.SetBinding("a", "b", ref, eva)
	may("binding of somebody else", false)
	r.SetBinding("a", "b2", ref, jan)
	may("another binding", true)
	r.DeleteBinding("a", "b")
	may("the first gone", true)
	r.DeleteBinding("a", "b2")
	may("both gone", false)
	r.DeleteBinding("a", "b2")
	r.SetBinding("a", "b", ref, jan)
	may("back", true)
	r.Reset()
	may("forgotten", false)
	r.SetBinding("a", "b", ref, jan)
	may("binding alone", false)
}

// The index finds the same rules as a check of every rule.
func TestAgainstEveryRule(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	some := func(of ...string) (out []string) {
		for _, s := range of {
			if rng.IntN(3) == 0 {
				out = append(out, s)
			}
		}
		return out
	}
	verbs, groups := []string{"get", "list", "*"}, []string{"", "apps", "*"}
	resources := []string{"pods", "pods/log", "*/log", "*", "nodes", "pods/", "a/b/c", "*/b/c"}
	users, teams, namespaces := []string{"u1", "u2"}, []string{"g1", "g2", "g3"}, []string{"", "a", "b"}
	allowed, refused := 0, 0
	for round := range 60 {
		r := rbac.New()
		names := []string{"x", "y", "z"}
		if round%2 == 0 { // so many that bindings are found by what they are about
			for i := range 40 {
				names = append(names, fmt.Sprint("n", i))
			}
		}
		type binding struct {
			ns   string
			ref  rbacv1.RoleRef
			subs []rbacv1.Subject
		}
		roles, bindings := map[string][]rbacv1.PolicyRule{}, map[string]binding{}
		for range 60 + 10*len(names) {
			ns, name := pick(namespaces...), pick(names...)
			switch rng.IntN(5) {
			case 0, 1:
				var rules []rbacv1.PolicyRule
				for range rng.IntN(3) * rng.IntN(8) {
					rules = append(rules, rbacv1.PolicyRule{
						Verbs: some(verbs...), APIGroups: some(groups...), Resources: some(resources...), ResourceNames: some("n1", "n2", "", "", ""),
						NonResourceURLs: some("/a", "/a/*", "*", "/b*"),
					})
				}
				r.SetRole(ns, name, rules)
				roles[ns+"/"+name] = rules
			case 2, 3:
				b := binding{ns: ns, ref: rbacv1.RoleRef{Kind: "ClusterRole", Name: pick(names...)}}
				if ns != "" && rng.IntN(2) == 0 {
					b.ref.Kind = "Role"
				}
				for range rng.IntN(3) {
					b.subs = append(b.subs, rbacv1.Subject{Kind: "User", Name: pick(users...)}, rbacv1.Subject{Kind: "Group", Name: pick(teams...)})
				}
				r.SetBinding(ns, name, b.ref, b.subs)
				bindings[ns+"/"+name] = b
			case 4:
				if rng.IntN(2) == 0 {
					r.DeleteRole(ns, name)
					delete(roles, ns+"/"+name)
				} else {
					r.DeleteBinding(ns, name)
					delete(bindings, ns+"/"+name)
				}
			}
			a := &authx.Attributes{
				User: &authx.Identity{Name: pick(users...), Groups: some(teams...)}, Verb: pick("get", "list", "watch"), Namespace: pick(namespaces...),
				APIGroup: pick("", "apps", "batch"), Resource: pick("pods", "nodes", "*", "pods/log", "pods/", "a", "a/b"), Subresource: pick("", "", "log", "c", "b/c"),
				Name: pick("", "n1", "n3"), ResourceRequest: rng.IntN(4) > 0, Path: pick("/", "/a", "/a/b", "/bc"),
			}
			want := false
			for _, b := range bindings {
				if b.ns != "" && b.ns != a.Namespace {
					continue
				}
				mine := false
				for _, s := range b.subs {
					mine = mine || s.Kind == "User" && s.Name == a.User.Name || s.Kind == "Group" && a.User.InGroup(s.Name)
				}
				ns := ""
				if b.ref.Kind == "Role" {
					ns = b.ns
				}
				for _, rule := range roles[ns+"/"+b.ref.Name] {
					want = want || mine && rbac.RuleAllows(a, &rule)
				}
			}
			if d, reason, _ := r.Authorize(t.Context(), a); (d == authx.Allow) != want {
				t.Fatalf("%+v of %+v: %v %q, want %v", a, a.User, d, reason, want)
			}
			if want {
				allowed++
			} else {
				refused++
			}
		}
	}
	if part := allowed * 100 / (allowed + refused); part < 20 || part > 80 {
		t.Errorf("%d%% were allowed: the test looks at one side only", part)
	}
}

func TestUncovered(t *testing.T) {
	for _, c := range []struct {
		name       string
		held, want []rbacv1.PolicyRule
		missing    string
	}{
		{"nothing for nothing", nil, nil, ""},
		{"the same", []rbacv1.PolicyRule{rule("get core pods")}, []rbacv1.PolicyRule{rule("get core pods")}, ""},
		{"put together from several", []rbacv1.PolicyRule{rule("get core pods"), rule("list core pods"), rule("get core nodes"), rule("list core nodes")}, []rbacv1.PolicyRule{rule("get,list core pods,nodes")}, ""},
		{"one verb missing", []rbacv1.PolicyRule{rule("get core pods")}, []rbacv1.PolicyRule{rule("get,list core pods")}, `{APIGroups:[""], Resources:["pods"], Verbs:["list"]}`},
		{"a wildcard is not the sum", []rbacv1.PolicyRule{rule("get,list,watch,create,update,patch,delete core pods")}, []rbacv1.PolicyRule{rule("* core pods")}, `{APIGroups:[""], Resources:["pods"], Verbs:["*"]}`},
		{"wildcards cover", []rbacv1.PolicyRule{rule("* * *")}, []rbacv1.PolicyRule{rule("* * *"), rule("get core pods/log x")}, ""},
		{"a subresource is not covered by its resource", []rbacv1.PolicyRule{rule("get core pods")}, []rbacv1.PolicyRule{rule("get core pods/log")}, `{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}`},
		{"a wildcard of subresources", []rbacv1.PolicyRule{rule("get core */log")}, []rbacv1.PolicyRule{rule("get core pods/log")}, ""},
		{"a name is no wildcard", []rbacv1.PolicyRule{rule("get core pods *")}, []rbacv1.PolicyRule{rule("get core pods b")}, `{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}`},
		{"resources and paths", []rbacv1.PolicyRule{rule("* * *")}, []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"x"}, NonResourceURLs: []string{"/a"}}}, `{NonResourceURLs:["/a"], Verbs:["get"]}`},
		{"names cover names", []rbacv1.PolicyRule{rule("get core pods a,b")}, []rbacv1.PolicyRule{rule("get core pods b")}, ""},
		{"names do not cover all", []rbacv1.PolicyRule{rule("get core pods a")}, []rbacv1.PolicyRule{rule("get core pods")}, `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}`},
		{"all covers names", []rbacv1.PolicyRule{rule("get core pods")}, []rbacv1.PolicyRule{rule("get core pods a")}, ""},
		{"a missing name", []rbacv1.PolicyRule{rule("get core pods a")}, []rbacv1.PolicyRule{rule("get core pods a,c")}, `{APIGroups:[""], Resources:["pods"], ResourceNames:["c"], Verbs:["get"]}`},
		{"paths", []rbacv1.PolicyRule{paths("get /a/*")}, []rbacv1.PolicyRule{paths("get /a/b,/a/*,/a/b/*")}, ""},
		{"a wider path", []rbacv1.PolicyRule{paths("get /a/*")}, []rbacv1.PolicyRule{paths("get /a*")}, `{NonResourceURLs:["/a*"], Verbs:["get"]}`},
		{"resources do not cover paths", []rbacv1.PolicyRule{rule("* * *")}, []rbacv1.PolicyRule{paths("get /a")}, `{NonResourceURLs:["/a"], Verbs:["get"]}`},
	} {
		missing, err := rbac.Uncovered(c.held, c.want)
		if got := rbac.Describe(missing); got != c.missing || err != nil {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, c.missing)
		}
	}
}

// Rules that are short to write may stand for very much.
func TestRulesOfManyParts(t *testing.T) {
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprint("x", i))
	}
	huge := []rbacv1.PolicyRule{{Verbs: many, APIGroups: many, Resources: many, ResourceNames: many}}
	wide := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: many}}
	// Rules alike in all but the last string that is compared.
	alike := func(n int, name string) []rbacv1.PolicyRule {
		return slices.Repeat([]rbacv1.PolicyRule{{Verbs: many[:32], APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{name}}}, n)
	}
	for name, c := range map[string]struct {
		held, want []rbacv1.PolicyRule
		err        error
	}{
		"of everything, for one who may do everything":        {[]rbacv1.PolicyRule{rule("* * *")}, huge, nil},
		"of everything, for one who may do nothing":           {nil, huge, rbac.ErrTooMany},
		"of everything, for one who may do much":              {huge, huge, rbac.ErrTooMany},
		"of many resources, against many":                     {wide, wide, rbac.ErrTooMany},
		"of many resources, against few":                      {[]rbacv1.PolicyRule{rule("get core x1")}, wide, nil},
		"of many rules, against more that grant them at last": {slices.Concat(alike(1500, "a"), alike(1, "b")), alike(1500, "b"), rbac.ErrTooMany},
		"of many rules, against those that grant them":        {slices.Concat(alike(200, "a"), alike(1, "b")), alike(200, "b"), nil},
		"of paths": {nil, []rbacv1.PolicyRule{{Verbs: many, NonResourceURLs: many}}, rbac.ErrTooMany},
	} {
		if _, err := rbac.Uncovered(c.held, c.want); err != c.err {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := rbac.New()
	r.SetRole("", "r", append(huge, wide[0], wide[0], wide[0], wide[0], wide[0], wide[0], wide[0], wide[0]))
	r.SetBinding("", "b", rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, []rbacv1.Subject{{Kind: "User", Name: "jan"}})
	for text, want := range map[string]authx.Decision{"get core x7": authx.Allow, "x1 x2 x3 x4": authx.Allow, "x1 x2 x3 y": authx.NoOpinion, "x1 x2 x3": authx.NoOpinion} {
		a := resourceName(text)
		a.User = &authx.Identity{Name: "jan"}
		if d, _, _ := r.Authorize(t.Context(), a); d != want {
			t.Errorf("%s: %v", text, d)
		}
	}
}

func TestHeldAndRulesFor(t *testing.T) {
	r := rbac.New()
	r.SetRole("", "c", []rbacv1.PolicyRule{rule("get core nodes"), paths("get /x")})
	r.SetRole("a", "l", []rbacv1.PolicyRule{rule("get core pods p")})
	jan := []rbacv1.Subject{{Kind: "User", Name: "jan"}}
	r.SetBinding("", "c", rbacv1.RoleRef{Kind: "ClusterRole", Name: "c"}, jan)
	r.SetBinding("a", "l", rbacv1.RoleRef{Kind: "Role", Name: "l"}, jan)
	r.SetBinding("a", "n", rbacv1.RoleRef{Kind: "Role", Name: "none"}, jan)
	id := &authx.Identity{Name: "jan"}
	if rules, err := r.Held(id, ""); len(rules) != 2 || err != nil {
		t.Errorf("in the cluster: %v %v", rules, err)
	}
	rules, err := r.Held(id, "a")
	if len(rules) != 3 || err == nil || err.Error() != `role.rbac.authorization.k8s.io "none" not found` {
		t.Errorf("in a: %v %v", rules, err)
	}
	resources, urls, incomplete, err := r.RulesFor(t.Context(), id, "a")
	if len(resources) != 2 || len(urls) != 1 || incomplete || err == nil {
		t.Errorf("%v %v %v %v", resources, urls, incomplete, err)
	}
	if _, ok := r.OfRole(rbacv1.RoleRef{Kind: "Role", Name: "l"}, "a"); !ok {
		t.Error("the role is not found")
	}
	if _, ok := r.OfRole(rbacv1.RoleRef{Kind: "ClusterRole", Name: "l"}, "a"); ok {
		t.Error("a cluster role of the role's name is found")
	}
}

// BenchmarkAuthorize decides among 1,000 bindings to roles of 10 rules each.
func BenchmarkAuthorize(b *testing.B) {
	r := rbac.New()
	for i := range 1000 {
		var rules []rbacv1.PolicyRule
		for j := range 10 {
			rules = append(rules, rule(fmt.Sprintf("get,list,watch,update core,apps r%d-%d,r%d-%d/status", i, j, i, j)))
		}
		name, ns := fmt.Sprintf("r%d", i), ""
		if i%2 == 0 {
			ns = "a"
		}
		r.SetRole("", name, rules)
		r.SetBinding(ns, name, rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, []rbacv1.Subject{
			{Kind: "User", Name: fmt.Sprintf("user%d", i)}, {Kind: "Group", Name: "everybody"},
		})
	}
	everybody := []string{"devs", "everybody", "system:authenticated"}
	for _, c := range []struct {
		name string
		user authx.Identity
		ask  string
		d    authx.Decision
	}{
		{"one binding", authx.Identity{Name: "user501"}, "update apps r501-9/status x", authx.Allow},
		{"one binding refused", authx.Identity{Name: "user501"}, "update apps r500-9/status x", authx.NoOpinion},
		{"all bindings", authx.Identity{Name: "jan", Groups: everybody}, "update apps r998-9/status x", authx.Allow},
		{"all bindings refused", authx.Identity{Name: "jan", Groups: everybody}, "delete apps r998-9 x", authx.NoOpinion},
		{"stranger", authx.Identity{Name: "jan", Groups: []string{"x"}}, "get core r1-1 x", authx.NoOpinion},
	} {
		a := resourceName(c.ask)
		a.User, a.Namespace = &c.user, "a"
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d, _, _ := r.Authorize(b.Context(), a); d != c.d {
					b.Fatal(d)
				}
			}
		})
	}
	b.Run("after a change of one role", func(b *testing.B) {
		a := resourceName("update apps r998-9/status x")
		a.User, a.Namespace = &authx.Identity{Name: "jan", Groups: everybody}, "a"
		rules := []rbacv1.PolicyRule{rule("get core x")}
		for b.Loop() {
			r.SetRole("", "r2", rules)
			if d, _, _ := r.Authorize(b.Context(), a); d != authx.Allow {
				b.Fatal(d)
			}
		}
	})
}
