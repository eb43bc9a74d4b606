package core_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/release"
)

// TestClaimSources: of the two fields for a source each follows the other; fields that are not served are dropped.
func TestClaimSources(t *testing.T) {
	ref := func(kind, namespace string) *corev1.TypedObjectReference {
		r := &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: kind, Name: "a"}
		if namespace != "" {
			r.Namespace = &namespace
		}
		return r
	}
	claim := func(kind string, ref *corev1.TypedObjectReference) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		if kind != "" {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: kind, Name: "a"}
		}
		c.Spec.DataSourceRef = ref
		return c
	}
	shown := func(c *corev1.PersistentVolumeClaim) string {
		text := "-"
		if d := c.Spec.DataSource; d != nil {
			text = d.Kind
		}
		r := c.Spec.DataSourceRef
		switch {
		case r == nil:
			return text + " -"
		case r.Namespace != nil:
			return fmt.Sprint(text, " ", r.Kind, " in ", *r.Namespace)
		}
		return text + " " + r.Kind
	}
	for _, c := range []struct {
		name     string
		old, now *corev1.PersistentVolumeClaim
		want     string
	}{
		{"claim", nil, claim("PersistentVolumeClaim", nil), "PersistentVolumeClaim PersistentVolumeClaim"},
		{"other in the older field", nil, claim("Other", nil), "- -"},
		{"other in the newer field", nil, claim("", ref("Other", "")), "Other Other"},
		{"other namespace", nil, claim("", ref("Other", "b")), "- -"},
		{"other namespace beside the older field", nil, claim("PersistentVolumeClaim", ref("Other", "b")), "PersistentVolumeClaim PersistentVolumeClaim"},
		{"other namespace as before", claim("", ref("Other", "b")), claim("", ref("Other", "b")), "- Other in b"},
		{"older field alone as before", claim("Other", ref("Other", "")), claim("Other", nil), "Other Other"},
	} {
		if c.old == nil {
			core.PersistentVolumeClaim(gates.New(release.Default).Enabled).PrepareForCreate(context.Background(), c.now)
		} else {
			core.PersistentVolumeClaim(gates.New(release.Default).Enabled).PrepareForUpdate(context.Background(), c.now, c.old)
		}
		if got := shown(c.now); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
