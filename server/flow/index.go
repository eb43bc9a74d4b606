package flow

import (
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
)

// index finds the rules that may apply to a user, so that a request does not evaluate the rules of all other
// users, however many flow schemas there are.
type index struct {
	rules []ranked // in the order of evaluation

	// Indexes of the rules that name a user or a group, in order.
	anybody       []int
	users, groups map[string][]int
	accounts      map[string][]int // of service accounts, as namespace:name
	accountsOf    map[string][]int // of all accounts of a namespace

	size int    // schemas, rules and subjects together
	last *Class // for requests to which no rule applies
}

// ranked is a rule with its class.
type ranked struct {
	class *Class
	rule  *flowcontrolv1.PolicyRulesWithSubjects
}

// newIndex makes the index of classes in the order of evaluation. The last one is for requests to which no
// rule applies.
func newIndex(classes []*Class) *index {
	x := &index{
		users: map[string][]int{}, groups: map[string][]int{}, accounts: map[string][]int{}, accountsOf: map[string][]int{},
		last: classes[len(classes)-1],
	}
	for _, k := range classes {
		x.size += 1 + len(k.spec.Rules)
		for i := range k.spec.Rules {
			at := len(x.rules)
			x.rules = append(x.rules, ranked{k, &k.spec.Rules[i]})
			x.size += len(k.spec.Rules[i].Subjects)
			for j := range k.spec.Rules[i].Subjects {
				x.add(&k.spec.Rules[i].Subjects[j], at)
			}
		}
	}
	return x
}

// add records that a rule names a subject.
func (x *index) add(s *flowcontrolv1.Subject, at int) {
	switch {
	case s.User != nil && s.User.Name == every, s.Group != nil && s.User == nil && s.Group.Name == every:
		x.anybody = once(x.anybody, at)
	case s.User != nil:
		x.users[s.User.Name] = once(x.users[s.User.Name], at)
	case s.Group != nil:
		x.groups[s.Group.Name] = once(x.groups[s.Group.Name], at)
	case s.ServiceAccount != nil && s.ServiceAccount.Name == every:
		x.accountsOf[s.ServiceAccount.Namespace] = once(x.accountsOf[s.ServiceAccount.Namespace], at)
	case s.ServiceAccount != nil:
		name := s.ServiceAccount.Namespace + ":" + s.ServiceAccount.Name
		x.accounts[name] = once(x.accounts[name], at)
	}
}

// once appends a position unless it is already the last one.
func once(list []int, at int) []int {
	if n := len(list); n > 0 && list[n-1] == at {
		return list
	}
	return append(list, at)
}

// find returns the class of a request: that of the first rule that applies.
func (x *index) find(user *authx.Identity, info *request.Info) *Class {
	if user == nil {
		return x.last
	}
	first := x.first(len(x.rules), x.anybody, info)
	first = x.first(first, x.users[user.Name], info)
	for _, group := range user.Groups {
		first = x.first(first, x.groups[group], info)
	}
	if account, ok := strings.CutPrefix(user.Name, authx.ServiceAccountPrefix); ok {
		namespace, _, _ := strings.Cut(account, ":")
		first = x.first(first, x.accounts[account], info)
		first = x.first(first, x.accountsOf[namespace], info)
	}
	if first == len(x.rules) {
		return x.last
	}
	return x.rules[first].class
}

// first returns the first of some rules that applies to a request, if it precedes another position, and
// otherwise that position.
func (x *index) first(before int, of []int, info *request.Info) int {
	for _, at := range of {
		if at >= before {
			break
		}
		if aboutRequest(x.rules[at].rule, info) {
			return at
		}
	}
	return before
}
