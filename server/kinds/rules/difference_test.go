package rules_test

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

func claim(change func(*corev1.PersistentVolumeClaimSpec)) *corev1.PersistentVolumeClaimSpec {
	name, mode := "set-later", corev1.PersistentVolumeFilesystem
	s := &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, StorageClassName: &name, VolumeMode: &mode,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
	}
	change(s)
	return s
}

// TestDifference: a value that differs is shown between two that do not, on each side; the rest is counted.
func TestDifference(t *testing.T) {
	same := func(*corev1.PersistentVolumeClaimSpec) {}
	empty, long := "", strings.Repeat("x", 300)
	conditions := func(reason string) []certificatesv1.CertificateSigningRequestCondition {
		return []certificatesv1.CertificateSigningRequestCondition{{Type: "Denied"}, {Type: "Approved", Reason: reason}}
	}
	for name, c := range map[string]struct {
		old, value any
		want       []string
	}{
		"a list": {*claim(same), *claim(func(s *corev1.PersistentVolumeClaimSpec) { s.AccessModes[0] = "ReadOnlyMany" }), []string{
			"  v1.PersistentVolumeClaimSpec{",
			"- \tAccessModes: []v1.PersistentVolumeAccessMode{\"ReadWriteOnce\"},",
			"+ \tAccessModes: []v1.PersistentVolumeAccessMode{\"ReadOnlyMany\"},",
			"  \tSelector:    nil,",
			"  \tResources:   {Requests: {s\"storage\": {i: {...}, s: \"1Gi\", Format: \"BinarySI\"}}},",
			"  \t... // 6 identical fields",
			"  }", "",
		}},
		"a map": {*claim(same), *claim(func(s *corev1.PersistentVolumeClaimSpec) { s.Resources.Requests["storage"] = resource.MustParse("2Gi") }), []string{
			"  v1.PersistentVolumeClaimSpec{",
			"  \tAccessModes: {\"ReadWriteOnce\"},",
			"  \tSelector:    nil,",
			"  \tResources: v1.VolumeResourceRequirements{",
			"  \t\tLimits: nil,",
			"- \t\tRequests: v1.ResourceList{",
			"- \t\t\ts\"storage\": {i: resource.int64Amount{value: 1073741824}, s: \"1Gi\", Format: \"BinarySI\"},",
			"- \t\t},",
			"+ \t\tRequests: v1.ResourceList{",
			"+ \t\t\ts\"storage\": {i: resource.int64Amount{value: 2147483648}, s: \"2Gi\", Format: \"BinarySI\"},",
			"+ \t\t},",
			"  \t},",
			"  \tVolumeName:       \"\",",
			"  \tStorageClassName: &\"set-later\",",
			"  \t... // 4 identical fields",
			"  }", "",
		}},
		"a pointer": {claim(same), claim(func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = &empty }), []string{
			"  &v1.PersistentVolumeClaimSpec{",
			"  \t... // 2 identical fields",
			"  \tResources:        {Requests: {s\"storage\": {i: {...}, s: \"1Gi\", Format: \"BinarySI\"}}},",
			"  \tVolumeName:       \"\",",
			"- \tStorageClassName: &\"set-later\",",
			"+ \tStorageClassName: &\"\",",
			"  \tVolumeMode:       &\"Filesystem\",",
			"  \tDataSource:       nil,",
			"  \t... // 2 identical fields",
			"  }", "",
		}},
		"an element": {conditions("a"), conditions("b"), []string{
			"  []v1.CertificateSigningRequestCondition{",
			"  \t{Type: \"Denied\"},",
			"  \t{",
			"  \t\tType:   \"Approved\",",
			"  \t\tStatus: \"\",",
			"- \t\tReason: \"a\",",
			"+ \t\tReason: \"b\",",
			"  \t\tMessage: \"\",",
		}},
		"long texts":     {&empty, &long, []string{"- &\"\",", "+ &\"" + long[:256] + "\"...,", ""}},
		"another type":   {1, "1", []string{"- 1,", "+ \"1\",", ""}},
		"nothing at all": {claim(same), claim(same), []string{""}},
	} {
		got, want := rules.Difference(c.old, c.value), strings.Join(c.want, "\n")
		if name == "an element" {
			got, want = strings.ReplaceAll(got, ": ", ":"), strings.ReplaceAll(want, ": ", ":")
			for strings.Contains(got, ": ") || strings.Contains(want, ": ") {
				got, want = strings.ReplaceAll(got, ": ", ":"), strings.ReplaceAll(want, ": ", ":")
			}
			got = got[:min(len(got), len(want))]
		}
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
