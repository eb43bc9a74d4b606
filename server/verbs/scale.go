package verbs

import (
	"cmp"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/writes"
)

// scale reads or writes the number of replicas through a Scale.
func (h *Handler) scale(c *Call, verb string) error {
	switch verb {
	case "get":
		return h.getScale(c)
	case "update":
		return h.updateScale(c)
	case "patch":
		return h.patchScale(c)
	}
	return status.NotAllowed()
}

func (h *Handler) getScale(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	// A stock server of an older release answers that the scale is not found, whatever the error of the revision.
	parent := c.Sub.Scale.NamesParent || c.Resource.Release.Has(release.ScalesOfParents)
	if version := c.Info.Query.Get("resourceVersion"); version != "" && c.Resource.HasGoType() {
		if _, err := h.Objects.Read(c.Context(), c.Permit(), c.place(c.Info.Name), version); err != nil {
			if parent {
				return err
			}
			return apierrors.NewNotFound(scaleResource(c.Resource), c.Info.Name)
		}
	} else if err := h.Objects.CatchUp(c.Context()); err != nil {
		return err
	}
	if err := h.holdLive(c, h.liveSize(c)); err != nil {
		return err
	}
	obj, _, err := h.Objects.Live(c.Context(), c.Permit(), c.place(c.Info.Name))
	if !parent && (apierrors.IsNotFound(err) || apierrors.IsBadRequest(err)) {
		return apierrors.NewNotFound(scaleResource(c.Resource), c.Info.Name)
	}
	if err != nil {
		return err
	}
	if obj, err = c.Resource.ToServed(obj); err != nil {
		return err
	}
	if check := c.Sub.Scale.Check; check != nil {
		if err := check(obj); err != nil {
			return err
		}
	}
	return h.Answers.Scale(&c.Request, form, http.StatusOK, writes.ScaleOf(c.Sub.Scale, obj))
}

// scaleResource names the scale of a resource in errors. For the core group, which has no kind Scale, it is in the group of
// scales; for a custom resource it is the resource itself.
func scaleResource(r *kinds.Resource) schema.GroupResource {
	if !r.HasGoType() {
		return r.GroupResource()
	}
	group := cmp.Or(r.Group, writes.ScaleKind.Group)
	return schema.GroupResource{Group: group, Resource: r.Plural + "/scale"}
}

func (h *Handler) updateScale(c *Call) error {
	form, err := h.Answers.Negotiate(&c.Request)
	if err != nil {
		return err
	}
	from, body, options, err := h.readUpdate(c)
	if err != nil {
		return err
	}
	sent := &autoscalingv1.Scale{}
	if err := h.decode(c, from, body, writes.ScaleKind, sent, strictness(options.FieldValidation)); err != nil {
		return err
	}
	scale, err := h.Writes.UpdateScale(c.R.Context(), c.Write(options, options.FieldManager, options.DryRun), sent)
	if err != nil {
		return err
	}
	return h.Answers.Scale(&c.Request, form, http.StatusOK, scale)
}

func (h *Handler) patchScale(c *Call) error {
	p, err := h.readPatch(c)
	if err != nil {
		return err
	}
	var scale *autoscalingv1.Scale
	if p.applies() {
		scale, err = h.applyScale(c, &p)
	} else {
		scale, err = h.Writes.PatchScale(c.R.Context(), p.request(c), p.change(h, h.Answers.Forms.JSON))
	}
	if err != nil {
		return err
	}
	return h.Answers.Scale(&c.Request, p.form, http.StatusOK, scale)
}

// applyScale applies a Scale.
func (h *Handler) applyScale(c *Call, p *patching) (*autoscalingv1.Scale, error) {
	applied, err := p.applied()
	if err != nil {
		return nil, err
	}
	return h.Writes.ApplyScale(c.R.Context(), p.request(c), applied)
}
