package convert

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// emptySelector is a key that no pod has: in policy/v1beta1 an empty selector means no pod,
// in policy/v1 every pod.
const emptySelector = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

func onEmpty(operator string) Object {
	return Object{"matchExpressions": []any{Object{"key": emptySelector, "operator": operator}}}
}

func isEmpty(selector Object) bool {
	some := false
	each(selector, "matchExpressions", func(Object) { some = true })
	return selector != nil && len(sub(selector, "matchLabels")) == 0 && !some
}

func budgetUp(o Object) error {
	spec := sub2(o, "spec")
	if isEmpty(sub(spec, "selector")) {
		spec["selector"] = onEmpty("Exists")
	}
	return nil
}

func budgetDown(o Object) error {
	spec := sub2(o, "spec")
	selector := sub(spec, "selector")
	if isEmpty(selector) {
		spec["selector"] = onEmpty("DoesNotExist")
		return nil
	}
	each(sub2(spec, "selector"), "matchExpressions", func(e Object) {
		if text(e, "key") == emptySelector && text(e, "operator") == "Exists" {
			spec["selector"] = Object{}
		}
	})
	return nil
}

const rbacGroup = "rbac.authorization.k8s.io"

// subjectsUp adds the API groups of subjects, and replaces the user * by the group system:authenticated.
func subjectsUp(o Object) error {
	each(o, "subjects", func(s Object) {
		version := text(s, "apiVersion")
		delete(s, "apiVersion")
		gv, err := schema.ParseGroupVersion(version)
		kind := text(s, "kind")
		switch {
		case err == nil && version != "" && gv.Group != "":
			s["apiGroup"] = gv.Group
		case kind == "User" || kind == "Group":
			s["apiGroup"] = rbacGroup
		}
		if kind == "User" && text(s, "name") == "*" {
			s["kind"], s["name"], s["apiGroup"] = "Group", "system:authenticated", rbacGroup
		}
	})
	preset(must(o, "roleRef"), "apiGroup", rbacGroup)
	return nil
}

func subjectsDown(o Object) error {
	each(o, "subjects", func(s Object) {
		group := text(s, "apiGroup")
		delete(s, "apiGroup")
		switch {
		case group == rbacGroup:
			s["apiVersion"] = rbacGroup + "/v1alpha1"
		case group == "" && text(s, "kind") == "ServiceAccount":
			s["apiVersion"] = "v1"
		}
	})
	return nil
}

func runtimeClassUp(o Object) error {
	spec := sub2(o, "spec")
	delete(o, "spec")
	move(spec, "runtimeHandler", o, "handler")
	move(spec, "overhead", o, "overhead")
	move(spec, "scheduling", o, "scheduling")
	return nil
}

func runtimeClassDown(o Object) error {
	spec := Object{}
	move(o, "handler", spec, "runtimeHandler")
	move(o, "overhead", spec, "overhead")
	move(o, "scheduling", spec, "scheduling")
	o["spec"] = spec
	return nil
}

// signingUp names a signer and usages, which v1 demands.
func signingUp(o Object) error {
	spec := must(o, "spec")
	preset(spec, "signerName", "kubernetes.io/legacy-unknown")
	preset(spec, "usages", []any{"digital signature", "key encipherment"})
	each(sub2(o, "status"), "conditions", func(c Object) { preset(c, "status", "True") })
	return nil
}

// webhooksUp writes out fields whose default differs in v1, or that v1 requires.
func webhooksUp(o Object) error {
	each(o, "webhooks", func(w Object) {
		preset(w, "failurePolicy", "Ignore")
		preset(w, "matchPolicy", "Exact")
		preset(w, "sideEffects", "Unknown")
		preset(w, "timeoutSeconds", int64(30))
		preset(w, "admissionReviewVersions", []any{"v1beta1"})
	})
	return nil
}

// sharesUp and sharesDown give the shares of a level the name that each version has.
func sharesUp(o Object) error {
	if limited := sub(sub2(o, "spec"), "limited"); limited != nil {
		move(limited, "assuredConcurrencyShares", limited, "nominalConcurrencyShares")
	}
	return nil
}

func sharesDown(o Object) error {
	if limited := sub(sub2(o, "spec"), "limited"); limited != nil {
		move(limited, "nominalConcurrencyShares", limited, "assuredConcurrencyShares")
	}
	return nil
}
