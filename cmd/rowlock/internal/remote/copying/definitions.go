package copying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// serve waits until the target serves the custom resources whose definitions were copied. It reports those that
// take too long.
func (c *copier) serve(ctx context.Context) error {
	if c.o.DryRun || !slices.Contains(c.from.Resources(), definitions) {
		return nil
	}
	r, ok := c.target.Find("apiextensions.k8s.io", "customresourcedefinitions")
	if !ok {
		return nil // which was reported for each
	}
	until := time.Now().Add(c.o.Served)
	for data, err := range c.from.Objects(ctx, definitions) {
		if err != nil {
			return fmt.Errorf("reading %s of the source: %w", definitions, err)
		}
		t, err := newTask(definitions, data)
		quiet := copier{o: c.o, report: newReport(false)}
		if err != nil || !quiet.wanted(t) {
			continue
		}
		if err := c.established(ctx, r, t, until); err != nil {
			return err
		}
	}
	for { // a server may publish its resources a moment later
		target, err := c.to.Discover(ctx)
		if err != nil {
			return fmt.Errorf("discovering what the target serves: %w", err)
		}
		c.target = target
		missing := slices.ContainsFunc(c.from.Resources(), func(name string) bool {
			_, served := target.Find(split(name))
			return !served && c.isPlanned(name)
		})
		if !missing || time.Now().After(until) {
			return nil
		}
		if err := remote.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// established waits for one definition.
func (c *copier) established(ctx context.Context, r remote.Resource, t *task, until time.Time) error {
	for {
		data, err := c.get(ctx, t, r)
		if refused, ok := errors.AsType[*remote.StatusError](err); ok && refused.Code != http.StatusUnauthorized {
			c.report.note(t, "the target does not show whether it is served: "+refused.Message)
			return nil
		}
		if err != nil {
			return fmt.Errorf("waiting for the definition %s: %w", t.name, err)
		}
		var d apiextensionsv1.CustomResourceDefinition
		if data == nil || json.Unmarshal(data, &d) != nil {
			return nil // it was refused, and reported
		}
		if slices.ContainsFunc(d.Status.Conditions, func(s apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return s.Type == apiextensionsv1.Established && s.Status == apiextensionsv1.ConditionTrue
		}) {
			c.plan(&task{Resource: definitions, name: t.name})
			return nil
		}
		if time.Now().After(until) {
			c.report.note(t, fmt.Sprintf("is not served after %s", c.o.Served))
			return nil
		}
		if err := remote.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func split(resource string) (group, name string) {
	name, group, _ = strings.Cut(resource, ".")
	return group, name
}

// plan records a namespace or a definition that exists, or would exist, in the target.
func (c *copier) plan(t *task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch t.Resource {
	case "namespaces":
		c.planned["namespaces/"+t.name] = true
	case definitions:
		c.planned[t.name] = true // "widgets.example.com", which is the name of the resource, too
	}
}

func (c *copier) isPlanned(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.planned[name]
}
