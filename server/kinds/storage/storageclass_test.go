package storage_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/rowlock/rowlock/server/kinds/storage"
)

func term(key string, values ...string) corev1.TopologySelectorTerm {
	return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: values}}}
}

// class has no other errors than those of its topologies.
func class(terms ...corev1.TopologySelectorTerm) *storagev1.StorageClass {
	c := &storagev1.StorageClass{Provisioner: "p.example/x", AllowedTopologies: terms}
	storage.StorageClass(off).Default(c)
	return c
}

func TestTopologies(t *testing.T) {
	const first, second, third = "allowedTopologies[0].matchLabelExpressions", "allowedTopologies[1].matchLabelExpressions", "allowedTopologies[2].matchLabelExpressions"
	for name, tc := range map[string]struct {
		terms []corev1.TopologySelectorTerm
		want  []string // fields
	}{
		"none":                   {nil, nil},
		"different":              {[]corev1.TopologySelectorTerm{term("zone", "a"), term("zone", "b"), term("rack", "a")}, nil},
		"equal":                  {[]corev1.TopologySelectorTerm{term("zone", "a", "b"), term("zone", "b", "a")}, []string{second}},
		"three times":            {[]corev1.TopologySelectorTerm{term("zone", "a"), term("zone", "a"), term("zone", "a")}, []string{second, third, third}},
		"without expressions":    {[]corev1.TopologySelectorTerm{{}}, []string{first}},
		"a value twice":          {[]corev1.TopologySelectorTerm{term("zone", "a", "a")}, []string{first + "[0].values[1]"}},
		"no values":              {[]corev1.TopologySelectorTerm{term("zone")}, []string{first + "[0].values"}},
		"a key that is no label": {[]corev1.TopologySelectorTerm{term("a b", "a")}, []string{first + "[0].key"}},
	} {
		var got []string
		for _, err := range storage.StorageClass(off).Validate(context.Background(), class(tc.terms...)) {
			got = append(got, err.Field)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: errors of %q, want %q", name, got, tc.want)
		}
	}
}

// TestManyTopologies: errors of terms that all repeat one another are cut short.
func TestManyTopologies(t *testing.T) {
	const n = 30_000
	if errs := storage.StorageClass(off).Validate(context.Background(), class(make([]corev1.TopologySelectorTerm, n)...)); len(errs) < 10_000 || len(errs) > 11_000 {
		t.Errorf("%d errors", len(errs))
	}
	var different []corev1.TopologySelectorTerm
	for i := range n {
		different = append(different, term("zone", strconv.Itoa(i)))
	}
	if errs := storage.StorageClass(off).Validate(context.Background(), class(different...)); len(errs) > 0 {
		t.Errorf("%d errors of different terms, first %v", len(errs), errs[0])
	}
}
