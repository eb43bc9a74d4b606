package verbs

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/status"
)

func (h *Handler) patch(c *Call) error {
	patchType, options, form, body, err := h.readPatch(c)
	if err != nil {
		return err
	}
	in := intent{manager: managerOf(c, options.FieldManager), options: options, dry: len(options.DryRun) > 0}
	var ch *change
	if patchType == codecs.PatchApplyYAML || patchType == codecs.PatchApplyCBOR {
		if body, err = applyBody(patchType, body); err != nil {
			return err
		}
		in.applies = true
		ch = h.applyChange(c, in, options, body)
	} else {
		ch = h.patchChange(c, in, &apply.Patch{
			Type: patchType, Body: body, Strictness: strictness(options.FieldValidation), JSON: coerced(jsoncodec.Codec{}, c.Resource), Known: h.known,
		})
	}
	out, err := h.change(c, ch)
	if err != nil {
		return err
	}
	return h.answer(c, form, out.code(), out.item, out.obj)
}

// readPatch checks and reads all that a PATCH request consists of.
func (h *Handler) readPatch(c *Call) (patchType string, options *metav1.PatchOptions, form form, body []byte, err error) {
	types := h.Answers.Forms.PatchTypes(c.Resource.Custom)
	if !c.Resource.Custom {
		if err = codecs.Consumable(c.R, types); err != nil {
			return
		}
	}
	if form, err = h.Answers.Negotiate(&c.Request); err != nil {
		return
	}
	if patchType, err = codecs.PatchType(c.R.Header.Get("Content-Type"), types); err != nil {
		return
	}
	if body, err = h.Body(c); err != nil {
		return
	}
	if err = h.weigh(c, h.patchCodec(patchType), body, patched(c)); err != nil {
		return
	}
	if c.Scope.Audit != nil && c.Scope.Audit.WantsRequest() {
		auditPatch(c, patchType, body)
	}
	options, err = patchOptions(c, patchType)
	return
}

// patchCodec is the form that a patch is written in.
func (h *Handler) patchCodec(patchType string) codecs.Codec {
	switch patchType {
	case codecs.PatchApplyYAML:
		return h.Answers.Forms.Codec(codecs.YAML)
	case codecs.PatchApplyCBOR:
		return h.Answers.Forms.Codec(codecs.CBOR)
	}
	return h.Answers.Forms.JSON
}

// patched is an object of the kind that a patch is going to make: what is in the patch
// ends up in one.
func patched(c *Call) runtime.Object {
	if c.Resource.New == nil {
		return &unstructured.Unstructured{}
	}
	return c.Resource.New()
}

// auditPatch hands a patch to the audit event, as JSON. One that is none is left
// out, and refused soon.
func auditPatch(c *Call, patchType string, body []byte) {
	data, err := applyBody(patchType, body)
	if err == nil && patchType == codecs.PatchApplyYAML {
		data, err = yaml.ToJSON(body)
	}
	if err == nil {
		c.Scope.Audit.RequestPatch(data)
	}
}

// applyBody turns the body of an apply into JSON or YAML.
func applyBody(patchType string, body []byte) ([]byte, error) {
	if patchType != codecs.PatchApplyCBOR {
		return body, nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if _, err := (cbor.Codec{}).Decode(body, u, codecs.Ignore); err != nil {
		return nil, apierrors.NewBadRequest("error decoding CBOR: " + err.Error())
	}
	return jsoncodec.Append(nil, u.Object)
}

// patchChange is a JSON, merge or strategic merge patch of an object that is there.
func (h *Handler) patchChange(c *Call, in intent, p *apply.Patch) *change {
	r := c.Resource
	ch := &change{intent: in}
	ch.compute = func(old kinds.Object, item *cache.Item) (kinds.Object, error) {
		current, encoded, err := h.jsonOf(r, old, item)
		if err != nil {
			return nil, err
		}
		patched, warnings, err := h.Patcher.Change(c.Context(), p, r.GVK(), current, encoded)
		if err != nil {
			return nil, status.Show(err)
		}
		h.warn(c, warnings)
		obj, ok := patched.(kinds.Object)
		if !ok {
			return nil, apierrors.NewBadRequest("the patch makes it no object any more")
		}
		if err := nameError(c, obj); err != nil {
			return nil, err
		}
		return h.incoming(r, obj)
	}
	return ch
}

// applyChange is a server-side apply.
func (h *Handler) applyChange(c *Call, in intent, options *metav1.PatchOptions, body []byte) *change {
	r, force := c.Resource, options.Force != nil && *options.Force
	ch := &change{intent: in, create: c.Sub == nil && has(r, "create")}
	ch.compute = func(old kinds.Object, _ *cache.Item) (kinds.Object, error) {
		if h.Owner == nil {
			return nil, status.NotAllowed()
		}
		var live kinds.Object
		if old != nil {
			var err error
			if live, err = objects.FromStored(r, objects.Copy(old)); err != nil {
				return nil, err
			}
		}
		obj, err := h.Owner.Apply(r, c.Info.Subresource, live, body, in.manager, force, h.now())
		if err != nil {
			return nil, status.Show(err)
		}
		problems, err := ownership.RepeatedFields(body, strictness(options.FieldValidation))
		if err != nil {
			return nil, err
		}
		h.warn(c, problems)
		if uid := obj.GetUID(); uid != "" && old == nil {
			return nil, apierrors.NewConflict(r.GroupResource(), c.Info.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		if err := nameError(c, obj); err != nil {
			return nil, err
		}
		if r.Custom {
			// What is unknown was refused by the merge already.
			if _, err := r.Schema.Coerce(obj); err != nil {
				return nil, status.Show(err)
			}
		}
		return h.incoming(r, obj)
	}
	ch.own = func(obj, old kinds.Object) error { return nil } // apply has recorded it already
	return ch
}
