package ownership

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTimesAreLeaves: the fields of an object are counted, but not the location of a time: package time owns
// it and fills it in on first use, which would race with a reader.
func TestTimesAreLeaves(t *testing.T) {
	zone := time.FixedZone("somewhere", 3600)
	if left := afterFields(reflect.ValueOf(&metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: time.Now().In(zone)}}), 100); left != 100 {
		t.Errorf("a time takes %d moves", 100-left)
	}
}
