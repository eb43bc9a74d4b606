package verbs

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/writes"
)

// patch serves PATCH of an object: the three kinds of patches, and server-side apply.
func (h *Handler) patch(c *Call) error {
	p, err := h.readPatch(c)
	if err != nil {
		return err
	}
	var out *writes.Outcome
	if p.applies() {
		var applied *writes.Applied
		if applied, err = p.applied(); err == nil {
			out, err = h.Writes.Apply(c.R.Context(), p.request(c), applied)
		}
	} else {
		out, err = h.Writes.Patch(c.R.Context(), p.request(c), p.change(h, coerced(h.Answers.Forms.JSON, c.Resource)))
	}
	if err != nil {
		return err
	}
	return h.answer(c, p.form, updateCode(out), out)
}

// patching is all that a PATCH request consists of.
type patching struct {
	contentType string // codecs.PatchJSON ...
	options     *metav1.PatchOptions
	form        form // of the answer
	body        []byte
}

func (p *patching) applies() bool {
	return p.contentType == codecs.PatchApplyYAML || p.contentType == codecs.PatchApplyCBOR
}

func (p *patching) request(c *Call) *writes.Request {
	return c.Write(p.options, p.options.FieldManager, p.options.DryRun)
}

// applied is the body of an apply.
func (p *patching) applied() (*writes.Applied, error) {
	body, err := applyBody(p.contentType, p.body)
	if err != nil {
		return nil, err
	}
	force := p.options.Force != nil && *p.options.Force
	return &writes.Applied{Body: body, Force: force, Strictness: strictness(p.options.FieldValidation)}, nil
}

// change is the patch of an object that is read and written with a codec.
func (p *patching) change(h *Handler, codec codecs.Codec) *apply.Patch {
	return &apply.Patch{
		Type: p.contentType, Body: p.body, Strictness: strictness(p.options.FieldValidation), JSON: codec, Known: h.known,
	}
}

// readPatch checks and reads all that a PATCH request consists of.
func (h *Handler) readPatch(c *Call) (p patching, err error) {
	types := h.Answers.Forms.PatchTypes(!c.Resource.StrategicMerge())
	if c.Resource.NegotiatesFirst() {
		if err = codecs.Consumable(c.R, types); err != nil {
			return
		}
	}
	if p.form, err = h.Answers.Negotiate(&c.Request); err != nil {
		return
	}
	if p.contentType, err = codecs.PatchType(c.R.Header.Get("Content-Type"), types); err != nil {
		return
	}
	if p.body, err = h.Body(c); err != nil {
		return
	}
	if err = h.weigh(c, h.patchCodec(p.contentType), p.body, patched(c)); err != nil {
		return
	}
	if c.Scope.Audit != nil && c.Scope.Audit.WantsRequest() {
		auditPatch(c, p.contentType, p.body)
	}
	p.options, err = patchOptions(c, p.contentType)
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
	data, err := cbor.ToJSON(body)
	if err != nil {
		return nil, apierrors.NewBadRequest("error decoding CBOR: " + err.Error())
	}
	return data, nil
}
