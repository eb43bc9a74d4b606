package copying

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// owner is what is known of an object that others name as their owner.
type owner struct {
	comes bool   // it is among what is copied
	uid   string // in the target, once it is there
	lost  bool   // it will not be in the target
}

// survey reads the source twice: who is named as an owner, and which of these are
// among what is copied.
func (c *copier) survey(ctx context.Context) error {
	each := func(do func(*task)) error {
		for _, resource := range c.from.Resources() {
			for data, err := range c.from.Objects(ctx, resource) {
				if err != nil {
					return fmt.Errorf("reading %s of the source: %w", resource, err)
				}
				t, err := newTask(resource, data)
				if err != nil {
					return err
				}
				do(t)
			}
			c.done[resource] = &bits{}
		}
		return nil
	}
	err := each(func(t *task) {
		for _, ref := range t.owners {
			c.owners[ref.UID] = &owner{}
		}
	})
	if err != nil || len(c.owners) == 0 {
		return err
	}
	quiet := copier{o: c.o, report: newReport(false)} // what is left out is reported later
	return each(func(t *task) {
		if o := c.owners[t.uid]; o != nil {
			o.comes = quiet.wanted(t)
		}
	})
}

// ready says whether all owners of an object are done, and puts their new UIDs into its
// references. An owner that is not copied is looked for in the target; where there is
// none, its reference is dropped, as it would have the object collected as garbage.
func (c *copier) ready(ctx context.Context, t *task) (bool, error) {
	list, _ := t.field("metadata", "ownerReferences").([]any)
	if len(list) != len(t.owners) {
		return true, nil
	}
	var kept []any
	for i, ref := range t.owners {
		o := c.ownerOf(ref.UID)
		if o.uid == "" && !o.lost && !o.comes {
			if err := c.lookUp(ctx, t, ref); err != nil {
				return false, err
			}
			o = c.ownerOf(ref.UID)
		}
		switch {
		case o.uid != "":
			entry, _ := list[i].(map[string]any)
			entry["uid"] = o.uid
			kept = append(kept, entry)
		case o.lost:
			c.report.note(t, fmt.Sprintf("is copied without its owner, %s %q, which is not in the target", remote.Printable(ref.Kind), remote.Printable(ref.Name)))
		default:
			return false, nil
		}
	}
	if meta, _ := t.field("metadata").(map[string]any); len(kept) > 0 {
		meta["ownerReferences"] = kept
	} else {
		delete(meta, "ownerReferences")
	}
	return true, nil
}

func (c *copier) ownerOf(uid string) owner {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.owners[uid]; o != nil {
		return *o
	}
	return owner{lost: true}
}

// settle notes what became of an object that may own others.
func (c *copier) settle(uid, there string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.owners[uid]; o != nil && o.uid == "" {
		o.uid, o.lost = there, there == ""
	}
}

// lookUp asks the target for an owner that is not copied.
func (c *copier) lookUp(ctx context.Context, t *task, ref reference) error {
	group, version, ok := strings.Cut(ref.APIVersion, "/")
	if !ok {
		group, version = "", ref.APIVersion
	}
	i := slices.IndexFunc(c.target.Resources, func(r remote.Resource) bool {
		return r.Group == group && r.Kind == ref.Kind && slices.Contains(r.Served, version) && r.Can("get")
	})
	if i < 0 || strings.ContainsAny(ref.Name, "/%?#") || ref.Name == "" || ref.Name == "." || ref.Name == ".." {
		c.settle(ref.UID, "")
		return nil
	}
	r := c.target.Resources[i]
	r.Version = version
	namespace := ""
	if r.Namespaced {
		namespace = t.namespace
	}
	data, err := c.to.Do(ctx, remote.Request{Method: http.MethodGet, Path: r.Path(namespace) + "/" + ref.Name})
	if remote.Is(err, http.StatusNotFound) {
		c.settle(ref.UID, "")
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for the owner of %s: %w", t.name, err)
	}
	c.settle(ref.UID, uidOf(data))
	return nil
}

// unreachable gives up owners that never come, because they wait for each other.
func (c *copier) unreachable() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.owners {
		o.lost = o.uid == ""
	}
}

func uidOf(data []byte) string {
	var h struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if json.Unmarshal(data, &h) != nil {
		return ""
	}
	return h.Metadata.UID
}
