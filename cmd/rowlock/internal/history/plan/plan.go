// Package plan restores objects: it finds which ones have to be created, changed and deleted, tries each step on
// the server as a dry run, and then carries the steps out with the rights of the user. Each step is bound to the
// state that was read: an object that has changed since is reported as a conflict and never overwritten.
//
// A plan is held in memory, and its size is bounded.
package plan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// Manager is the field manager of a plan's writes.
const Manager = "rowlock-restore"

// Bounds of a plan.
const (
	maxSteps = 20000
	maxBytes = 256 << 20
)

// Object is an object as JSON.
type Object = revisions.Object

// Action is the kind of write of a step.
type Action string

// Actions.
const (
	Create Action = "create"
	Change Action = "change"
	Adopt  Action = "adopt" // gets its owner back, and is left as it is otherwise
	Delete Action = "delete"
)

// Step is one write.
type Step struct {
	Action Action
	Target cluster.Target
	Object Object   // the object that is created, or its new content
	Status any      // written after the object, with --status
	OldUID string   // of the object in the past
	Fields []string // that a change changes, the first of them
	Notes  []string

	uid, version string // of the live object: it must not have changed
	owned        bool   // it has owners that this plan creates
	already      bool   // it may exist by then: its controller creates it too

	Err  error // why it does not go, or did not
	Done bool
	Note string // the actual result
}

// Plan is a list of steps, in the order in which they are done.
type Plan struct {
	Steps []*Step
	Same  int            // objects that are as they should be
	Left  map[string]int // omitted objects, by reason
	Notes []string

	bytes  int
	uids   map[string]string // of restored objects: by the UID of the past
	absent map[string]bool   // namespaces that the plan creates
	made   map[string]bool   // UIDs of the past of created objects
}

// New returns an empty plan.
func New() *Plan {
	return &Plan{Left: map[string]int{}, uids: map[string]string{}, absent: map[string]bool{}, made: map[string]bool{}}
}

func (p *Plan) leave(reason string) { p.Left[reason]++ }

// add appends a step; too large a plan is an error.
func (p *Plan) add(s *Step, size int) error {
	p.Steps = append(p.Steps, s)
	p.bytes += size
	if s.Action == Create && s.OldUID != "" {
		p.made[s.OldUID] = true
	}
	if s.Action == Create && s.Target.Resource.Name == "namespaces" && s.Target.Resource.Group == "" {
		p.absent[s.Target.Name] = true
	}
	if len(p.Steps) > maxSteps || p.bytes > maxBytes {
		return fmt.Errorf("that is more than %d objects or %d MiB at once: name types, objects or a selector", maxSteps, maxBytes>>20)
	}
	return nil
}

// untried is why a dry run skips a step.
const untried = "not tried: its namespace is made first"

// DryRun sends each step as a dry run and keeps the error with the step. ok reports whether all steps would
// succeed.
func (p *Plan) DryRun(ctx context.Context, c *cluster.Client) (ok bool, err error) {
	ok = true
	for _, s := range p.Steps {
		if s.Err == nil && s.Action == Create && p.absent[s.Target.Namespace] {
			s.Notes = append(s.Notes, untried)
			continue
		}
		if s.Err == nil {
			_, s.Err = s.send(ctx, c, true)
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		ok = ok && s.Err == nil
	}
	return ok, nil
}

// Apply carries out the steps whose dry run succeeded, and calls done after each. ok reports whether all of them
// succeeded.
func (p *Plan) Apply(ctx context.Context, c *cluster.Client, done func(*Step)) (ok bool, err error) {
	ok = true
	lost := map[string]bool{} // past UIDs that were not restored
	for _, s := range p.Steps {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if s.Err == nil {
			s.Err = p.step(ctx, c, s, lost)
			s.Done = s.Err == nil
			done(s)
		}
		if s.Err != nil {
			ok = false
			lost[s.OldUID] = true
		}
	}
	return ok, nil
}

func (p *Plan) step(ctx context.Context, c *cluster.Client, s *Step, lost map[string]bool) error {
	if s.owned {
		if err := p.adopt(s, lost); err != nil {
			return err
		}
	}
	made, err := s.send(ctx, c, false)
	if s.Action == Create && s.already && apierrors.IsAlreadyExists(err) {
		if made, err = current(ctx, c, s.Target); err == nil {
			s.Note = "its controller was faster"
		}
	}
	if err != nil {
		return err
	}
	if s.Action == Create && s.OldUID != "" {
		p.uids[s.OldUID] = revisions.Text(made, "uid")
	}
	if s.Status != nil && s.Note == "" {
		return writeStatus(ctx, c, s, made)
	}
	return nil
}

// adopt replaces the UIDs of owners in an object by those of the created objects.
func (p *Plan) adopt(s *Step, lost map[string]bool) error {
	for _, ref := range owners(s.Object) {
		old, _ := ref["uid"].(string)
		if lost[old] {
			return fmt.Errorf("its owner %v/%v did not come back", ref["kind"], ref["name"])
		}
		if now := p.uids[old]; now != "" {
			ref["uid"] = now
		}
	}
	return nil
}

// send sends the write of a step, or tries it.
func (s *Step) send(ctx context.Context, c *cluster.Client, dry bool) (Object, error) {
	query := url.Values{"fieldManager": {Manager}}
	if dry {
		query.Set("dryRun", metav1.DryRunAll)
	}
	r := cluster.Request{Path: s.Target.Path(), Query: query, Body: s.Object}
	switch s.Action {
	case Create:
		r.Method, r.Path = http.MethodPost, s.Target.Resource.Path(s.Target.Namespace, "")
	case Change:
		r.Method = http.MethodPut
	case Adopt:
		r.Method, r.Type = http.MethodPatch, "application/merge-patch+json"
		r.Body = Object{"metadata": Object{"uid": s.uid, "resourceVersion": s.version, "ownerReferences": meta(s.Object)["ownerReferences"]}}
	case Delete:
		r.Method = http.MethodDelete
		query.Del("fieldManager")
		r.Body = Object{
			"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": string(metav1.DeletePropagationBackground),
			"preconditions": Object{"uid": s.uid, "resourceVersion": s.version},
		}
	}
	var answer Object
	err := c.Do(ctx, r, &answer)
	return answer, asConflict(err)
}

// writeStatus writes the past status of an object that was created.
func writeStatus(ctx context.Context, c *cluster.Client, s *Step, made Object) error {
	body := Object{
		"apiVersion": s.Object["apiVersion"], "kind": s.Object["kind"], "status": s.Status,
		"metadata": Object{"uid": revisions.Text(made, "uid")},
	}
	err := c.Do(ctx, cluster.Request{
		Method: http.MethodPatch, Path: s.Target.Path("status"), Query: url.Values{"fieldManager": {Manager}}, Body: body, Type: "application/merge-patch+json",
	}, nil)
	if err != nil {
		return fmt.Errorf("it is back, without its status: %w", err)
	}
	return nil
}

// current reads a live object.
func current(ctx context.Context, c *cluster.Client, t cluster.Target) (Object, error) {
	var obj Object
	err := c.Do(ctx, cluster.Request{Path: t.Path()}, &obj)
	return obj, err
}

// asConflict wraps a conflict of the API in a ConflictError.
func asConflict(err error) error {
	switch {
	case apierrors.IsConflict(err):
		return &ConflictError{What: "it has been changed in the meantime", Err: err}
	case apierrors.IsAlreadyExists(err):
		return &ConflictError{What: "it has been created in the meantime", Err: err}
	}
	return err
}

// ConflictError: the live object is not in the state that the plan was made for.
type ConflictError struct {
	What string
	Err  error
}

func (e *ConflictError) Error() string { return "conflict: " + e.What + ": " + e.Err.Error() }

func (e *ConflictError) Unwrap() error { return e.Err }

// Conflict reports whether the step failed because of a conflict.
func (s *Step) Conflict() bool {
	var conflict *ConflictError
	return errors.As(s.Err, &conflict)
}
