//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// resizedSteps is the number of requests about each Pod of resizes.
const resizedSteps = 12

// sized has the fields of a Pod that a resize changes, and some that it must not change.
type sized struct {
	cpu, image, stolen, version string
	generation                  float64
}

func sizeOf(o object) sized {
	s := sized{stolen: o.text("metadata", "labels", "stolen"), version: o.text("metadata", "resourceVersion")}
	s.generation, _ = o.at("metadata", "generation").(float64)
	if containers, _ := o.at("spec", "containers").([]any); len(containers) == 1 {
		container, _ := containers[0].(map[string]any)
		s.cpu, s.image = object(container).text("resources", "requests", "cpu"), object(container).text("image")
	}
	return s
}

// resizes resizes Pods of its own: it changes how much of the processor their containers request. Nothing else of a Pod may change.
func (c *client) resizes(ctx context.Context) {
	for ctx.Err() == nil && c.resized(ctx, "resized-"+c.rec.ID()) {
	}
}

// resized creates a Pod, resizes it some times, and deletes it.
func (c *client) resized(ctx context.Context, name string) bool {
	path := narrow + "/pods/" + name
	defer c.tidy(ctx, path+"?gracePeriodSeconds=0")
	if !c.made(ctx, c, [2]string{narrow + "/pods", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"50m","memory":"64Mi"}}}]}}`, name)}) {
		return false
	}
	_, answer, ok := c.must(ctx, c, http.MethodGet, path, "", http.StatusOK, http.StatusNotFound)
	var o object
	if !ok || json.Unmarshal(answer, &o) != nil {
		return ok
	}
	was, older := sizeOf(o), ""
	for n := 0; n < resizedSteps && ctx.Err() == nil; n++ {
		c.rest(ctx)
		next := was
		switch way := c.rand.IntN(6); way {
		case 0, 1: // the other fields of the body must have no effect
			next.cpu, next.generation = fmt.Sprintf("%dm", 101+(c.rand.IntN(800)/10*10)+n%10), was.generation+1
			if next.cpu == was.cpu {
				continue
			}
			ok = c.resize(ctx, path+"/resize", resizeBody("", next.cpu), "a resize", was, &next)
		case 2:
			if older == "" {
				continue
			}
			c.rule(ctx, &rule{what: "a resize of a version that is not the newest", method: http.MethodPatch, path: path + "/resize", contentType: strategicPatch, body: resizeBody(fmt.Sprintf(`"resourceVersion":%q,`, older), "999m"), code: http.StatusConflict})
			continue
		case 3:
			ok = c.resize(ctx, path+"/status", fmt.Sprintf(`{"status":{"conditions":[{"type":"robust","status":"True","message":%q}]}}`, c.rec.ID()), "a write of the status", was, &next)
		case 4:
			c.rule(ctx, &rule{what: "a resize that is none", method: http.MethodPatch, path: path, contentType: strategicPatch, body: resizeBody("", "998m"), code: http.StatusUnprocessableEntity})
			continue
		default:
			c.inspect(ctx, "reads", "the Pod "+name, path, func(o object) string { return was.differs(o) })
			continue
		}
		if !ok { // its state is unknown
			return ctx.Err() == nil
		}
		if next.version != was.version {
			older = was.version
		}
		was = next
	}
	return true
}

// resizeBody returns a patch of the size that also tries to change other fields.
func resizeBody(metadata, cpu string) string {
	return fmt.Sprintf(`{"metadata":{%s"labels":{"stolen":"yes"}},"spec":{"containers":[{"name":"c","image":"stolen","resources":{"requests":{"cpu":%q}}}]}}`, metadata, cpu)
}

// resize sends a patch after which the Pod must equal next, and sets the version in next. After a refused patch it sets next to was. It
// returns false if the Pod is in another state, or in an unknown one.
func (c *client) resize(ctx context.Context, path, body, what string, was sized, next *sized) bool {
	check := &history.Check{Property: "writes", What: what + " of " + path, Server: c.next(), Call: c.rec.Now()}
	code, answer, err := c.send(ctx, check.Server, http.MethodPatch, path, strategicPatch, body)
	check.Return = c.rec.Now()
	switch outcome(code, answer, err) {
	case history.OK:
	case history.Unknown, history.NotFound:
		return false
	default:
		*next = was
		if code == http.StatusForbidden || code == http.StatusUnprocessableEntity {
			c.rec.Add(&history.Access{Subject: what, Server: check.Server, What: history.Free, Call: check.Call, Return: check.Return, Code: code})
		}
		return true
	}
	var o object
	if json.Unmarshal(answer, &o) != nil {
		return false
	}
	next.version = o.text("metadata", "resourceVersion")
	check.Wrong = next.differs(o)
	c.rec.Add(check)
	return check.Wrong == ""
}

// differs describes how a Pod differs from s; "" if it does not.
func (s sized) differs(o object) string {
	if got := sizeOf(o); o != nil && got != s {
		return fmt.Sprintf("it is %+v, and must be %+v", got, s)
	}
	return there(o)
}
