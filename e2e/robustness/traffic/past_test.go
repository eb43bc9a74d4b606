//go:build unix

package traffic

import "testing"

// TestWritten: a revision is the object that it wrote, at its own version, or nothing where that was deleted.
func TestWritten(t *testing.T) {
	t.Parallel()
	const content = `"content":{"metadata":{"name":"a","resourceVersion":"7"},"data":{"v":"op1"}}`
	it, err := written([]byte(`{"metadata":{"name":"configmaps:a:7"},"revision":"7","change":"update",` + content + `}`))
	if err != nil || it == nil || it.Name != "a" || it.State.Version != 7 || it.State.Fields["v"] != "op1" {
		t.Errorf("it is %+v, %v", it, err)
	}
	if it, err := written([]byte(`{"revision":"8","change":"delete",` + content + `}`)); it != nil || err != nil {
		t.Errorf("a deletion is %+v, %v", it, err)
	}
	for _, bad := range []string{`{`, `{"revision":"","change":"update"}`, `{"revision":"8","change":"update"}`} {
		if it, err := written([]byte(bad)); err == nil {
			t.Errorf("%s is %+v", bad, it)
		}
	}
}

// TestContinued: the client finds the continue token in the refusal of a page, and none in a body that is not JSON.
func TestContinued(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{`{"kind":"Status","metadata":{"continue":"token"},"code":410}`: "token", `{"code":410}`: "", `no`: ""} {
		if got := continued([]byte(answer)); got != want {
			t.Errorf("%s: the token is %q, want %q", answer, got, want)
		}
	}
}
