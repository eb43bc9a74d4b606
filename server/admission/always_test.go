package admission_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// known are the namespaces that exist; asking about "broken" fails.
type known map[string]bool

func (k known) Namespace(_ context.Context, name string) (exists, terminating bool, err error) {
	if name == "broken" {
		return false, false, errors.New("no answer")
	}
	return k[name], false, nil
}

func write(namespace, plural string) *admission.Attributes {
	return &admission.Attributes{Operation: admission.Create, Resource: &kinds.Resource{Plural: plural, Namespaced: true}, Namespace: namespace, Name: "x", Object: &corev1.ConfigMap{}}
}

func TestAlways(t *testing.T) {
	const refusal = `configmaps "x" is forbidden: admission control is denying all modifications`
	a := write("n", "configmaps")
	if err := admission.NewChain(admission.AlwaysAdmit{}).Admit(t.Context(), a); err != nil {
		t.Error(err)
	}
	c := admission.NewChain(admission.AlwaysDeny{})
	if err := c.Admit(t.Context(), a); fmt.Sprint(err) != refusal {
		t.Error(err)
	}
	if err := c.Validate(t.Context(), a); fmt.Sprint(err) != refusal {
		t.Error(err)
	}
}

func TestNamespaceAutoProvision(t *testing.T) {
	k := known{"there": true}
	made := 0
	p := admission.NamespaceAutoProvision{Namespaces: k, Create: func(_ context.Context, name string) error {
		if name == "raced" {
			return apierrors.NewAlreadyExists(corev1.Resource("namespaces"), name)
		}
		if name == "forbidden" {
			return errors.New("no")
		}
		made++
		k[name] = true
		return nil
	}}
	dry := write("dry", "configmaps")
	dry.DryRun = true
	for _, c := range []struct {
		a    *admission.Attributes
		made int
		err  string
	}{
		{write("there", "configmaps"), 0, "<nil>"},
		{write("new", "configmaps"), 1, "<nil>"},
		{write("new", "secrets"), 1, "<nil>"},
		{write("raced", "configmaps"), 1, "<nil>"},
		{dry, 1, "<nil>"},
		{write("other", "namespaces"), 1, "<nil>"},
		{write("forbidden", "configmaps"), 1, `configmaps "x" is forbidden: no`},
		{write("broken", "configmaps"), 1, `configmaps "x" is forbidden: no answer`},
	} {
		if err := p.Admit(t.Context(), c.a); fmt.Sprint(err) != c.err || made != c.made {
			t.Errorf("%s: %v, %d made", c.a.Namespace, err, made)
		}
	}
}

func TestNamespaceExists(t *testing.T) {
	p := admission.NamespaceExists{Namespaces: known{"there": true}}
	for namespace, want := range map[string]string{
		"there": "<nil>", "": "<nil>", "gone": `namespaces "gone" not found`, "broken": "Internal error occurred: no answer",
	} {
		if err := p.Validate(t.Context(), write(namespace, "configmaps")); fmt.Sprint(err) != want {
			t.Errorf("%q: %v, want %s", namespace, err, want)
		}
	}
}
