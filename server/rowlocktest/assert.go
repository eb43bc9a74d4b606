package rowlocktest

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Patience is the time limit of Eventually and Await: far longer than any operation, so that no test fails because the
// machine is busy.
const Patience = time.Minute

// every is their polling interval.
const every = time.Millisecond

// Eventually waits until check returns nil, and fails the test with its last error.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(every) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("still after %s: %v", Patience, err)
		}
	}
}

// Await waits until a version of an object after a revision satisfies ok, and returns that version. It
// searches the store's history, so it also finds a version that existed only for a moment.
func (s *Server) Await(gvr schema.GroupVersionResource, namespace, name string, after int64, ok func(Version) bool) Version {
	s.t.Helper()
	key := s.key(gvr, namespace, name)
	var last *Version
	for end := time.Now().Add(Patience); ; time.Sleep(every) {
		h, upTo, err := s.history(key, after)
		if err != nil {
			s.t.Fatalf("rowlocktest: the history of %s: %v", key, err)
		}
		for _, v := range h {
			if last = &v; ok(v) {
				return v
			}
		}
		if after = upTo; time.Now().After(end) {
			s.t.Fatalf("%s was never so; it ended as %s", key, shown(last))
		}
	}
}

// Never fails the test if a version of an object after a revision satisfies bad. It does not see future
// versions: first wait for the end of the process with Await.
func (s *Server) Never(gvr schema.GroupVersionResource, namespace, name string, after int64, bad func(Version) bool) {
	s.t.Helper()
	for _, v := range s.History(gvr, namespace, name).Since(after) {
		if bad(v) {
			s.t.Errorf("%s %s/%s was what it never is, at revision %d: %s", gvr.Resource, namespace, name, v.Revision, shown(&v))
		}
	}
}

// Exists is for Await: the object is there. Absent: it is not.
func Exists(v Version) bool { return !v.Deleted }

// Absent is for Await: the object was deleted.
func Absent(v Version) bool { return v.Deleted }

// Field is for Await and Never: a field has a value. See Transitions for path.
func Field(value string, path ...string) func(Version) bool {
	return func(v Version) bool { return !v.Deleted && field(v.Object.Object, path) == value }
}

func shown(v *Version) string {
	if v == nil {
		return "nothing"
	}
	obj := v.Object.DeepCopy()
	unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
	if v.Deleted {
		return "deleted: " + text(obj.Object)
	}
	return text(obj.Object)
}
