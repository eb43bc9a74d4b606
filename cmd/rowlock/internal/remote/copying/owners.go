package copying

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// owner is an object that other objects name as their owner.
type owner struct {
	comes bool   // it is among the copied objects
	uid   string // in the target, once it is there
	lost  string // why there will be none in the target; "": there may be
}

// maxOwners limits the objects that owner references name: each takes some 100 bytes of memory.
const maxOwners = 4_000_000

// ownerKey is a digest of a UID, which may be any text.
type ownerKey [16]byte

func keyOf(uid string) ownerKey {
	sum := sha256.Sum256([]byte(uid))
	return ownerKey(sum[:16])
}

// survey reads the source twice to find the owners, and which of them are copied. Unreadable objects are reported
// later.
func (c *copier) survey(ctx context.Context) error {
	each := func(do func(*task) error) error {
		for _, resource := range c.from.Resources() {
			for data, err := range c.from.Objects(ctx, resource) {
				if err != nil {
					return fmt.Errorf("reading %s of the source: %w", resource, err)
				}
				if t, err := newTask(resource, data); err != nil {
					continue
				} else if err := do(t); err != nil {
					return err
				}
			}
			c.done[resource] = &bits{}
		}
		return nil
	}
	err := each(func(t *task) error {
		for _, ref := range t.owners {
			if ref.UID != "" {
				c.owners[keyOf(ref.UID)] = &owner{}
			}
		}
		if len(c.owners) > c.mostOwners {
			return fmt.Errorf("the source names more than %d objects as owners of others", c.mostOwners)
		}
		return nil
	})
	if err != nil || len(c.owners) == 0 {
		return err
	}
	quiet := copier{o: c.o, report: newReport(false)} // omitted objects are reported later
	return each(func(t *task) error {
		if o := c.owners[keyOf(t.uid)]; o != nil && quiet.wanted(t) {
			o.comes = true
		}
		return nil
	})
}

// ready reports whether all owners of an object are done, and sets their new UIDs in its references. An owner that
// is not copied is looked up in the target; if it is not there, the reference is dropped, because the garbage
// collector would delete the object. The notes on dropped references are reported once the object is ready.
func (c *copier) ready(ctx context.Context, t *task) (bool, error) {
	list, _ := t.field("metadata", "ownerReferences").([]any)
	if len(list) == 0 {
		return true, nil
	}
	var kept []any
	var notes []string
	for i, ref := range t.owners {
		o := c.ownerOf(ref.UID)
		if o.uid == "" && o.lost == "" && !o.comes {
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
		case o.lost != "":
			notes = append(notes, fmt.Sprintf("is copied without its owner, %.80s %q, which %s", ref.Kind, ref.Name, o.lost))
		default:
			return false, nil
		}
	}
	for _, n := range notes {
		c.report.note(t, n)
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
	if o := c.owners[keyOf(uid)]; o != nil {
		return *o
	}
	return owner{lost: "has no UID"}
}

// notThere is the usual reason why an owner is lost.
const notThere = "is not in the target"

// settle records the outcome of an object that may own others.
func (c *copier) settle(uid, there string) { c.settleReason(uid, there, notThere) }

func (c *copier) settleReason(uid, there, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.owners[keyOf(uid)]; o != nil && o.uid == "" {
		if o.uid, o.lost = there, why; there != "" {
			o.lost = ""
		}
	}
}

// lookUp reads an owner that is not copied from the target. An error concerns the connection; an owner that the
// target does not show counts as missing.
func (c *copier) lookUp(ctx context.Context, t *task, ref reference) error {
	group, version, ok := strings.Cut(ref.APIVersion, "/")
	if !ok {
		group, version = "", ref.APIVersion
	}
	i := slices.IndexFunc(c.target.Resources, func(r remote.Resource) bool {
		return r.Group == group && r.Kind == ref.Kind && slices.Contains(r.Served, version) && r.Can("get")
	})
	if i < 0 || remote.CheckNames("", ref.Name) != nil {
		c.settle(ref.UID, "")
		return nil
	}
	r := c.target.Resources[i]
	r.Version = version
	namespace := ""
	if r.Namespaced {
		namespace = t.namespace
	}
	data, err := c.to.Do(ctx, remote.Request{Method: http.MethodGet, Path: r.Path(namespace, ref.Name)})
	var refused *remote.StatusError
	switch {
	case remote.Is(err, http.StatusNotFound):
		c.settle(ref.UID, "")
	case errors.As(err, &refused) && refused.Code != http.StatusUnauthorized:
		c.settleReason(ref.UID, "", fmt.Sprintf("the target does not show: %.300s", refused.Message))
	case err != nil:
		return fmt.Errorf("looking for the owner of %s %s: %w", t.Resource, t.name, err)
	default:
		c.settle(ref.UID, uidOf(data))
	}
	return nil
}

// unreachable gives up owners that cannot be copied: they wait for each other, or follow their dependents.
func (c *copier) unreachable(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.owners {
		if o.uid == "" {
			o.lost = why
		}
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
