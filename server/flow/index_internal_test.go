package flow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/request"
)

// TestIndex: the index finds what asking all rules in turn would find.
func TestIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	found := map[string]int{}
	for range 300 {
		var classes []*Class
		for i := range 1 + random.IntN(20) {
			spec := &flowcontrolv1.FlowSchemaSpec{}
			for range random.IntN(4) {
				rule := flowcontrolv1.PolicyRulesWithSubjects{NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{pick("get", "post")}, NonResourceURLs: []string{pick("/a", "/b", "*")}}}}
				for range random.IntN(4) {
					var s flowcontrolv1.Subject
					switch random.IntN(4) {
					case 0:
						s.User = &flowcontrolv1.UserSubject{Name: pick("u", "v", "*", "system:serviceaccount:n:x")}
					case 1:
						s.Group = &flowcontrolv1.GroupSubject{Name: pick("g", "h", "*")}
					case 2:
						s.ServiceAccount = &flowcontrolv1.ServiceAccountSubject{Namespace: pick("n", "m"), Name: pick("x", "y", "*")}
					}
					rule.Subjects = append(rule.Subjects, s)
				}
				spec.Rules = append(spec.Rules, rule)
			}
			classes = append(classes, &Class{Schema: fmt.Sprint("schema ", i), spec: spec})
		}
		x := newIndex(append(classes, &Class{Schema: "last", spec: &flowcontrolv1.FlowSchemaSpec{}}))
		for range 30 {
			user := &authx.Identity{Name: pick("u", "v", "w", "system:serviceaccount:n:x", "system:serviceaccount:n:z", "system:serviceaccount:m:x", "system:serviceaccount:"), Groups: [][]string{nil, {"g"}, {"h", "g"}, {"other"}}[random.IntN(4)]}
			info := &request.Info{Verb: pick("get", "post", "put"), Path: pick("/a", "/b", "/c")}
			want := "last"
			if at := slices.IndexFunc(classes, func(k *Class) bool { return matchesAny(k.spec, user, info) }); at >= 0 {
				want = classes[at].Schema
			}
			if got := x.find(user, info).Schema; got != want {
				t.Fatalf("%s %s of %s with %v: %s, want %s", info.Verb, info.Path, user.Name, user.Groups, got, want)
			}
			found[want]++
		}
		if got := x.find(nil, &request.Info{Verb: "get", Path: "/a"}).Schema; got != "last" {
			t.Fatalf("of nobody: %s", got)
		}
	}
	if len(found) < 10 || found["last"] == 0 {
		t.Errorf("the requests were hardly different: %v", found)
	}
}

// matchesAny reports whether any rule of a schema matches a request; it checks one after the other.
func matchesAny(spec *flowcontrolv1.FlowSchemaSpec, user *authx.Identity, info *request.Info) bool {
	return slices.ContainsFunc(spec.Rules, func(r flowcontrolv1.PolicyRulesWithSubjects) bool {
		return aboutRequest(&r, info) && slices.ContainsFunc(r.Subjects, func(s flowcontrolv1.Subject) bool {
			switch {
			case s.User != nil:
				return s.User.Name == "*" || s.User.Name == user.Name
			case s.Group != nil:
				return s.Group.Name == "*" || slices.Contains(user.Groups, s.Group.Name)
			case s.ServiceAccount != nil:
				var namespace, name string
				n, _ := fmt.Sscanf(user.Name, "system:serviceaccount:%1s:%1s", &namespace, &name)
				return n == 2 && namespace == s.ServiceAccount.Namespace && (s.ServiceAccount.Name == "*" || s.ServiceAccount.Name == name)
			}
			return false
		})
	})
}

// TestRankingRests: repeated changes of schemas cause only so many rankings, if ranking takes long.
func TestRankingRests(t *testing.T) {
	now, step := time.Second, time.Duration(0)
	c := New(cache.New(nil), Config{Read: 4, Write: 2, Now: func() time.Duration { now += step; return now }})
	first := c.classes()
	c.changed.Store(true)
	if second := c.classes(); second == first {
		t.Fatal("a change was not seen")
	}
	// The same with a schema of many rules, which takes a second.
	c.schemas["many"] = &flowcontrolv1.FlowSchema{Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "catch-all"}, Rules: make([]flowcontrolv1.PolicyRulesWithSubjects, few),
	}}
	c.changed.Store(true)
	step = time.Second
	slow := c.classes()
	step = 0
	c.changed.Store(true)
	if c.classes() != slow {
		t.Error("what takes long is done again at once")
	}
	now += 10 * restAfter * time.Second
	again := c.classes()
	if again == slow {
		t.Error("a change is never seen")
	}
	if c.classes() != again {
		t.Error("ranked again without a change")
	}
}
