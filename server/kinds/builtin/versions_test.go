package builtin_test

import (
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs/sample"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
)

// lossy are versions that cannot express everything of the stored one, or only in
// annotations. Their packages have tests of their own for these.
var lossy = map[string]bool{
	"autoscaling/v1 horizontalpodautoscalers": true,
	"v1 events": true,
	// The stored version has no observedGeneration in conditions; migrations have no generation that one could observe.
	"storagemigration.k8s.io/v1beta1 storageversionmigrations": true,
	// Invalid objects alone differ: a request whose part "exactly" is empty, a device without "basic", "allNodes" that is false.
	"resource.k8s.io/v1 resourceclaims": true, "resource.k8s.io/v1beta2 resourceclaims": true,
	"resource.k8s.io/v1 resourceclaimtemplates": true, "resource.k8s.io/v1beta2 resourceclaimtemplates": true,
	"resource.k8s.io/v1 resourceslices": true, "resource.k8s.io/v1beta2 resourceslices": true,
}

// TestVersionsRoundTrip converts random objects of each version to the stored one and back,
// and those of the stored version to each other and back: nothing is lost on the way.
func TestVersionsRoundTrip(t *testing.T) {
	for _, v := range []release.Version{release.Default, release.Newest} {
		catalogue := kinds.NewCatalogue(builtin.Config{Release: v}.Resources())
		for _, r := range catalogue.Known() {
			name := r.APIVersion() + " " + r.Plural
			if r.ToStorage == nil || lossy[name] {
				continue
			}
			t.Run(v.String()+" "+name, func(t *testing.T) {
				home := catalogue.ByStorage(r.Storage.Key)
				random := rand.New(rand.NewSource(3))
				for range 50 {
					roundTrip(t, random, r, home)
					roundTrip(t, random, home, r)
				}
			})
		}
	}
}

// roundTrip makes a random object of one version and converts it to another and back.
func roundTrip(t *testing.T, random *rand.Rand, from, by *kinds.Resource) {
	t.Helper()
	obj := from.New()
	sample.Fill(random, obj)
	from.Release.View().Clear(obj)
	there, err := kinds.Convert(obj.DeepCopyObject().(kinds.Object), from, by)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := there.GetObjectKind().GroupVersionKind(), by.GVK(); got != want {
		t.Fatalf("%v, want %v", got, want)
	}
	back, err := kinds.Convert(there, by, from)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(obj, back, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
		t.Fatalf("%v by way of %v (-want +got):\n%s", from.GVK(), by.GVK(), diff)
	}
}
