package networking_test

import (
	"testing"

	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"

	"github.com/rowlock/rowlock/server/kinds/networking"
)

// TestFirstWords holds the words of the column of selectors to those of the version in which it was first shown.
func TestFirstWords(t *testing.T) {
	want := extensionsv1beta1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"]
	if got := networking.NetworkPolicyColumns.Definitions[1].Description; got != want || want == "" {
		t.Errorf("%q, want %q", got, want)
	}
}
