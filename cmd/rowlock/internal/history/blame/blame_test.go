package blame_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/blame"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/screen"
	"github.com/rowlock/rowlock/server/history"
)

var begun = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const records = `"managedFields":[
 {"manager":"a","operation":"Update","time":"2026-11-23T11:00:00Z","fieldsV1":{"f:spec":{"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:image":{}}},"f:size":{}}}},
 {"manager":"b","operation":"Update","time":"2026-11-23T11:30:00Z","fieldsV1":{"f:spec":{"f:list":{"k:{\"name\":\"y\"}":{}},"f:set":{"v:\"one\"":{}}}}}]`

func write(n int, change, spec string, managers ...string) *revisions.Revision {
	r := &revisions.Revision{
		Revision: fmt.Sprint(n), Change: change, WrittenAt: metav1.NewMicroTime(begun.Add(time.Duration(n) * time.Minute)),
		Content: &runtime.RawExtension{Raw: []byte(`{"kind":"Thing","metadata":{` + records + `},"spec":` + spec + `}`)},
	}
	for _, m := range managers {
		r.Managers = append(r.Managers, history.Manager{Manager: m, Operation: "Update"})
	}
	return r
}

func trace(t *testing.T, list ...*revisions.Revision) (map[string]blame.Origin, int) {
	t.Helper()
	var tracer blame.Tracer
	for _, r := range list {
		more, err := tracer.Add(r)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	_, seen := tracer.Oldest()
	return tracer.Origins(), seen
}

// TestOrigins: each field belongs to the write that gave it its present value, even if it had that
// value before, and wherever its element is in a list.
func TestOrigins(t *testing.T) {
	origins, seen := trace(t,
		write(5, "update", `{"size":1,"list":[{"name":"y","image":"2"},{"name":"x","image":"9"}],"set":["one"]}`, "a", "b"),
		write(4, "update", `{"size":1,"list":[{"name":"x","image":"8"},{"name":"y","image":"2"}],"set":["one"]}`, "four"),
		write(3, "update", `{"size":2,"list":[{"name":"x","image":"8"},{"name":"y","image":"1"}],"set":["one"]}`, "three"),
		write(2, "create", `{"size":1,"list":[{"name":"x","image":"8"},{"name":"y","image":"1"}]}`, "two"),
		write(1, "update", `{"size":1}`, "never looked at"),
	)
	if seen != 4 {
		t.Errorf("%d revisions were looked at, want 4", seen)
	}
	for path, want := range map[string]string{
		"spec.size": "four 4", `spec.list[name="y"].image`: "four 4", `spec.list[name="x"].image`: "a 5",
		"spec.set[0]": "three 3", "kind": "two 2", `spec.list[name="x"].name`: "two 2",
	} {
		o := origins[path]
		if got := o.Manager + " " + o.Revision; got != want || o.Before {
			t.Errorf("%s is of %q (%+v), want %q", path, got, o, want)
		}
	}
}

// TestOriginsBefore: where history ends, managedFields tell.
func TestOriginsBefore(t *testing.T) {
	origins, _ := trace(t,
		write(9, "update", `{"size":1,"list":[{"name":"x","image":"8"},{"name":"y","image":"1"}],"set":["one"]}`, "nine"),
		write(8, "update", `{"size":2,"list":[{"name":"x","image":"8"},{"name":"y","image":"1"}],"set":["one"]}`, "eight"),
	)
	if o := origins["spec.size"]; o.Manager != "nine" || o.Before {
		t.Errorf("size: %+v", o)
	}
	for path, want := range map[string]string{
		`spec.list[name="x"].image`: "a 11:00", `spec.list[name="y"].image`: "b 11:30", "spec.set[0]": "b 11:30", "kind": " 12:08",
	} {
		o := origins[path]
		if got := o.Manager + " " + o.Time.UTC().Format("15:04"); got != want || !o.Before {
			t.Errorf("%s is of %q (%+v), want %q", path, got, o, want)
		}
	}
}

// TestOriginsOfAnother: an object of the same name that was deleted set nothing.
func TestOriginsOfAnother(t *testing.T) {
	other := write(6, "update", `{"size":1}`, "other")
	other.Object.UID = "another"
	for name, older := range map[string]*revisions.Revision{"deleted": write(6, "delete", `{"size":1}`), "another": other} {
		origins, _ := trace(t, write(7, "update", `{"size":1}`, "seven"), older)
		if o := origins["spec.size"]; o.Manager != "seven" {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestDraw(t *testing.T) {
	text := "kind: Thing\nspec:\n  list:\n  - image: \"9\"\n    name: x\n  text: |\n    one\n    two\n"
	origins := map[string]blame.Origin{}
	for i, path := range []string{"kind", `spec.list[name="x"].image`, `spec.list[name="x"].name`, "spec.text"} {
		origins[path] = blame.Origin{Manager: fmt.Sprintf("m%d\x1b", i), Revision: "7", Time: begun}
	}
	got, err := blame.Render(screen.Screen{}, begun, text, origins)
	if err != nil {
		t.Fatal(err)
	}
	want := "m0 | kind: Thing\n| spec:\n|   list:\nm1 |   - image: \"9\"\nm2 |     name: x\nm3 |   text: |\nm3 |     one\nm3 |     two\n"
	var short []string
	for _, line := range strings.Split(got, "\n") {
		gutter, rest, _ := strings.Cut(line, "|")
		who, _, _ := strings.Cut(gutter, "\ufffd")
		if line != "" {
			line = strings.TrimSpace(strings.TrimSpace(who)+" |") + rest
		}
		short = append(short, line)
	}
	if strings.Join(short, "\n") != want || strings.Contains(got, "\x1b") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestOriginsBroken: malformed records name no manager, and cause no failure.
func TestOriginsBroken(t *testing.T) {
	r := write(1, "update", `{"a":null,"list":[null,1,{"name":{}}]}`)
	r.Content.Raw = []byte(strings.Replace(string(r.Content.Raw), `"f:spec"`, `"k:{"`, 1))
	if !json.Valid(r.Content.Raw) {
		t.Fatal("the test is wrong")
	}
	origins, _ := trace(t, r)
	if len(origins) != 6 {
		t.Errorf("%d fields: %v", len(origins), origins)
	}
}
