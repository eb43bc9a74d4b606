package copying

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/sqlstore/archive/recreate"
)

func decode(data []byte) (map[string]any, error) {
	var object map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&object); err != nil || object == nil {
		return nil, &remote.MalformedError{Path: "the target", What: "an object", Err: err}
	}
	return object, nil
}

// look waits until answers of the target may be decoded: their size is bounded like that of objects in
// progress. The caller calls done before it calls look again.
func (c *copier) look(ctx context.Context, answers ...[]byte) (done func(), err error) {
	var weight int64
	for _, a := range answers {
		weight += int64(len(a))
	}
	weight = min(weight, maxUnderWay)
	if err := c.looking.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { c.looking.Release(weight) }, nil
}

// equal reports whether the live object equals the one that would be written, without missing or additional fields.
func (c *copier) equal(ctx context.Context, t *task, r remote.Resource, live []byte) (bool, error) {
	done, err := c.look(ctx, live)
	if err != nil {
		return false, err
	}
	defer done()
	there, err := decode(live)
	if err != nil {
		return false, err
	}
	recreate.Object(t.Resource, there)
	if r.Status {
		delete(there, "status")
	}
	if t.Resource == "namespaces" {
		delete(there, "spec")
	}
	return reflect.DeepEqual(t.object, there), nil
}

// within reports whether there contains everything that want contains.
func within(want, there any) bool {
	switch w := want.(type) {
	case map[string]any:
		t, ok := there.(map[string]any)
		if !ok {
			return len(w) == 0 && there == nil
		}
		for name, v := range w {
			if !within(v, t[name]) {
				return false
			}
		}
		return true
	case []any:
		t, _ := there.([]any)
		if len(w) != len(t) {
			return false
		}
		for i, v := range w {
			if !within(v, t[i]) {
				return false
			}
		}
		return true
	}
	return want == there
}

func versionOf(data []byte) string {
	var h struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &h) != nil {
		return ""
	}
	return h.Metadata.ResourceVersion
}
