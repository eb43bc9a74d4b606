package flowcontrol

import (
	"slices"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/release"
)

// AutoUpdate is the annotation of objects that the server keeps at their values.
const AutoUpdate = "apf.kubernetes.io/autoupdate-spec"

const (
	masters         = "system:masters"
	nodes           = "system:nodes"
	accounts        = "system:serviceaccounts"
	authenticated   = "system:authenticated"
	unauthenticated = "system:unauthenticated"
	systemNamespace = "kube-system"
	manager         = "system:kube-controller-manager"
	scheduler       = "system:kube-scheduler"
	byUser          = flowcontrolv1.FlowDistinguisherMethodByUserType
	byNamespace     = flowcontrolv1.FlowDistinguisherMethodByNamespaceType
)

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{AutoUpdate: "true"}}
}

// MandatoryLevels returns the priority levels whose specs are fixed.
func MandatoryLevels() []*flowcontrolv1.PriorityLevelConfiguration {
	exempt := &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: meta("exempt"),
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type:   flowcontrolv1.PriorityLevelEnablementExempt,
			Exempt: &flowcontrolv1.ExemptPriorityLevelConfiguration{NominalConcurrencyShares: new(int32), LendablePercent: new(int32)},
		},
	}
	return []*flowcontrolv1.PriorityLevelConfiguration{exempt, level("catch-all", 5, 0, 0, 0)}
}

// SuggestedLevels returns the other priority levels that are there from the start.
func SuggestedLevels() []*flowcontrolv1.PriorityLevelConfiguration {
	return []*flowcontrolv1.PriorityLevelConfiguration{
		level("system", 30, 33, 64, 6),
		level("node-high", 40, 25, 64, 6),
		level("leader-election", 10, 0, 16, 4),
		level("workload-high", 40, 50, 128, 6),
		level("workload-low", 100, 90, 128, 6),
		level("global-default", 20, 50, 128, 6),
	}
}

// level makes a limited priority level; without queues it rejects.
func level(name string, shares, lendable, queues, hand int32) *flowcontrolv1.PriorityLevelConfiguration {
	response := flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	if queues > 0 {
		response = flowcontrolv1.LimitResponse{
			Type:    flowcontrolv1.LimitResponseTypeQueue,
			Queuing: &flowcontrolv1.QueuingConfiguration{Queues: queues, HandSize: hand, QueueLengthLimit: 50},
		}
	}
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: meta(name),
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &shares, LendablePercent: &lendable, LimitResponse: response,
			},
		},
	}
}

// MandatorySchemas returns the flow schemas whose specs are fixed.
func MandatorySchemas() []*flowcontrolv1.FlowSchema {
	return []*flowcontrolv1.FlowSchema{
		schema("exempt", "exempt", 1, "", everything(groups(masters)...)),
		schema("catch-all", "catch-all", 10000, byUser, everything(groups(unauthenticated, authenticated)...)),
	}
}

// SuggestedSchemas returns the other flow schemas of a release that are there from the start.
func SuggestedSchemas(v release.Version) []*flowcontrolv1.FlowSchema {
	return slices.DeleteFunc(suggestedSchemas(), func(s *flowcontrolv1.FlowSchema) bool { return !lifetimes[s.Name].Has(v) })
}

// lifetimes has the suggested schemas that are not there in all releases, by name.
var lifetimes = map[string]release.Between{
	"endpoint-controller":      {Gone: release.V133},
	"workload-leader-election": {Gone: release.V133},
}

func suggestedSchemas() []*flowcontrolv1.FlowSchema {
	leases := resources([]string{"get", "create", "update"}, "coordination.k8s.io", []string{"leases"}, []string{all}, false)
	endpoints := resources([]string{"get", "create", "update"}, "", []string{"endpoints"}, []string{all}, false)
	return []*flowcontrolv1.FlowSchema{
		schema("system-nodes", "system", 500, byUser, everything(groups(nodes)...)),
		schema("system-node-high", "node-high", 400, byUser, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects: groups(nodes),
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{
				resources([]string{all}, "", []string{"nodes", "nodes/status"}, []string{all}, true),
				resources([]string{all}, "coordination.k8s.io", []string{"leases"}, []string{all}, false),
			},
		}),
		schema("probes", "exempt", 2, "", flowcontrolv1.PolicyRulesWithSubjects{
			Subjects: groups(unauthenticated, authenticated),
			NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{
				{Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz", "/readyz", "/livez"}},
			},
		}),
		schema("system-leader-election", "leader-election", 100, byUser, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects:      append(users(manager, scheduler), systemAccounts(all)...),
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{leases},
		}),
		schema("endpoint-controller", "workload-high", 150, byUser, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects:      append(users(manager), systemAccounts("endpoint-controller", "endpointslicemirroring-controller")...),
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{endpoints},
		}),
		schema("workload-leader-election", "leader-election", 200, byUser, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects: systemAccounts(all),
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{
				resources(leases.Verbs, "", []string{"endpoints", "configmaps"}, []string{all}, false),
				leases,
			},
		}),
		schema("kube-controller-manager", "workload-high", 800, byNamespace, everything(users(manager)...)),
		schema("kube-scheduler", "workload-high", 800, byNamespace, everything(users(scheduler)...)),
		schema("kube-system-service-accounts", "workload-high", 900, byNamespace, everything(systemAccounts(all)...)),
		schema("service-accounts", "workload-low", 9000, byUser, everything(groups(accounts)...)),
		schema("global-default", "global-default", 9900, byUser, everything(groups(unauthenticated, authenticated)...)),
	}
}

func schema(name, level string, precedence int32, method flowcontrolv1.FlowDistinguisherMethodType, rules ...flowcontrolv1.PolicyRulesWithSubjects) *flowcontrolv1.FlowSchema {
	s := &flowcontrolv1.FlowSchema{
		ObjectMeta: meta(name),
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			MatchingPrecedence:         precedence,
			Rules:                      rules,
		},
	}
	if method != "" {
		s.Spec.DistinguisherMethod = &flowcontrolv1.FlowDistinguisherMethod{Type: method}
	}
	return s
}

func everything(subjects ...flowcontrolv1.Subject) flowcontrolv1.PolicyRulesWithSubjects {
	return flowcontrolv1.PolicyRulesWithSubjects{
		Subjects:         subjects,
		ResourceRules:    []flowcontrolv1.ResourcePolicyRule{resources([]string{all}, all, []string{all}, []string{all}, true)},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{all}, NonResourceURLs: []string{all}}},
	}
}

func resources(verbs []string, group string, names, namespaces []string, cluster bool) flowcontrolv1.ResourcePolicyRule {
	return flowcontrolv1.ResourcePolicyRule{
		Verbs: verbs, APIGroups: []string{group}, Resources: names, Namespaces: namespaces, ClusterScope: cluster,
	}
}

func groups(names ...string) []flowcontrolv1.Subject {
	var out []flowcontrolv1.Subject
	for _, n := range names {
		out = append(out, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: n}})
	}
	return out
}

func users(names ...string) []flowcontrolv1.Subject {
	var out []flowcontrolv1.Subject
	for _, n := range names {
		out = append(out, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: n}})
	}
	return out
}

func systemAccounts(names ...string) []flowcontrolv1.Subject {
	var out []flowcontrolv1.Subject
	for _, n := range names {
		out = append(out, flowcontrolv1.Subject{
			Kind:           flowcontrolv1.SubjectKindServiceAccount,
			ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Name: n, Namespace: systemNamespace},
		})
	}
	return out
}
