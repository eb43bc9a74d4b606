package networking_test

import (
	"testing"

	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"

	"github.com/rowlock/rowlock/server/kinds/networking"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/release/words"
)

// TestFirstWords holds the words of the column of selectors to those of the version in which it was first shown.
func TestFirstWords(t *testing.T) {
	want := extensionsv1beta1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"]
	texts, err := words.Of(release.Oldest)
	if err != nil {
		t.Fatal(err)
	}
	if got := networking.FirstWords(texts.Text("k8s.io/api/networking/v1.NetworkPolicySpec", "podSelector", "")); got != want || want == "" {
		t.Errorf("%q, want %q", got, want)
	}
}
