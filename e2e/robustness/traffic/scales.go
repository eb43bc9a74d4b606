//go:build unix

package traffic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// scales reads the Scale of an object, and at times writes a number of replicas by it: of the version that was read, or of any.
func (c *client) scales(k kind, key history.Key) {
	path := k.path(key.Namespace, key.Name) + "/scale"
	read := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.GetScale, Key: key}
	c.scaled(read, http.MethodGet, path, "", "")
	if read.Got == nil {
		return
	}
	op := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Scale, Field: history.Replicas, Key: key}
	replicas, err := history.ReplicasOf(op.ID)
	if err != nil {
		c.rec.Stuck(err.Error())
		return
	}
	scale := func(metadata string) string {
		return fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":%q,"namespace":%q%s},"spec":{"replicas":%d},"status":{"replicas":%[4]d}}`, key.Name, key.Namespace, metadata, replicas)
	}
	switch c.rand.IntN(6) {
	case 0:
		op.Dry = true
		c.scaled(op, http.MethodPut, path+"?dryRun=All", plainJSON, scale(""))
	case 1, 2:
		c.scaled(op, http.MethodPatch, path, mergePatch, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	case 3:
		c.scaled(op, http.MethodPut, path, plainJSON, scale(""))
	default:
		op.Expect = read.Got.Version
		c.scaled(op, http.MethodPut, path, plainJSON, scale(fmt.Sprintf(`,"resourceVersion":"%d"`, op.Expect)))
	}
}

// scaled is do for a Scale, which shows the version and the replicas of its object.
func (c *client) scaled(op *history.Op, method, path, contentType, body string) {
	c.record(op, method, path, contentType, body, func(answer []byte) (*history.State, error) {
		var scale struct {
			Metadata struct{ Name, UID, ResourceVersion string }
			Spec     struct{ Replicas int64 }
		}
		if err := json.Unmarshal(answer, &scale); err != nil {
			return nil, err
		}
		version, err := strconv.ParseUint(scale.Metadata.ResourceVersion, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the version of the Scale of %s: %w", scale.Metadata.Name, err)
		}
		s := &history.State{Version: version, UID: scale.Metadata.UID}
		if scale.Spec.Replicas > 0 {
			s.Fields = map[string]string{history.Replicas: history.ReplicasID(scale.Spec.Replicas)}
		}
		return s, nil
	})
}

// replaceStatus replaces the status of a custom resource as it was read, with another value of one field.
func (c *client) replaceStatus(op *history.Op, read *history.State) {
	op.Kind, op.Field, op.Expect = history.Status, "status."+c.name, read.Version
	values := map[string]string{c.name: op.ID}
	for field, value := range read.Fields {
		if name, ok := strings.CutPrefix(field, "status."); ok && name != c.name {
			values[name] = value
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic(err) // a map of texts
	}
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"resourceVersion":"%d"},"status":{"values":%s}}`, widgets.apiVersion, widgets.name, op.Key.Name, op.Expect, text)
	c.do(op, http.MethodPut, widgets.path(op.Key.Namespace, op.Key.Name)+"/status", plainJSON, body)
}
