package verbs_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestNamesAreUTF8: a name that JSON cannot hold is refused, however a client sends it: the stored object would have another name
// than its key, and after the next start lists of its resource would fail. PostgreSQL cannot hold NUL.
func TestNamesAreUTF8(t *testing.T) {
	s := servertest.Start(t, servertest.Plain(nil))
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
	message := func(meta metav1.ObjectMeta) string {
		t.Helper()
		role := &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: meta}
		body, err := protobuf.Codec{}.Encode(nil, role)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	for _, c := range []struct{ body, contentType string }{
		{message(metav1.ObjectMeta{Name: "a\xff"}), codecs.Protobuf},
		{message(metav1.ObjectMeta{GenerateName: "a\xff"}), codecs.Protobuf},
		{`{"metadata":{"name":"a\u0000"}}`, codecs.JSON},
	} {
		if w := s.Do("POST", roles, c.body, "Content-Type", c.contentType); w.Code != 422 || !strings.Contains(w.Body.String(), `metadata.name`) {
			t.Errorf("%q: %d %s", c.body, w.Code, w.Body)
		}
	}
	if w := s.Do("POST", roles, message(metav1.ObjectMeta{Name: "ä"}), "Content-Type", codecs.Protobuf); w.Code != 201 {
		t.Errorf("a name of other letters: %d %s", w.Code, w.Body)
	}
	if list := string(s.Must("GET", roles, "")); strings.Count(list, `"uid"`) != 1 {
		t.Errorf("the roles are %s", list)
	}
}
