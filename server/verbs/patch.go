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
	return h.Answers.Written(&c.Request, p.form, updateCode(out), out.Item, out.Object)
}

// patching is the parts of a PATCH request.
type patching struct {
	contentType string // codecs.PatchJSON ...
	options     *metav1.PatchOptions
	form        codecs.Form // of the answer
	body        []byte
}

func (p *patching) applies() bool {
	return p.contentType == codecs.PatchApplyYAML || p.contentType == codecs.PatchApplyCBOR
}

func (p *patching) request(c *Call) *writes.Request {
	return c.Write(p.options, p.options.FieldManager, p.options.DryRun)
}

// applied returns the body of an apply.
func (p *patching) applied() (*writes.Applied, error) {
	body, err := applyBody(p.contentType, p.body)
	if err != nil {
		return nil, err
	}
	force := p.options.Force != nil && *p.options.Force
	return &writes.Applied{Body: body, Force: force, Strictness: strictness(p.options.FieldValidation)}, nil
}

// change returns the patch of an object that is read and written with a codec.
func (p *patching) change(h *Handler, codec codecs.Codec) *apply.Patch {
	return &apply.Patch{
		Type: p.contentType, Body: p.body, Strictness: strictness(p.options.FieldValidation), JSON: codec, Types: h.Answers.Forms.JSON, Known: h.known,
	}
}

// readPatch reads and checks the parts of a PATCH request.
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
	var from codecs.Codec = h.Answers.Forms.JSON
	switch p.contentType {
	case codecs.PatchApplyYAML:
		from = h.Answers.Forms.Codec(codecs.YAML)
	case codecs.PatchApplyCBOR:
		from = h.Answers.Forms.Codec(codecs.CBOR)
	}
	var into runtime.Object = &unstructured.Unstructured{} // decoding the patch into an object of the kind costs what the patch has
	if c.Resource.New != nil {
		into = c.Resource.New()
	}
	if err = h.weigh(c, from, p.body, into); err != nil {
		return
	}
	if c.Scope.Audit != nil && c.Scope.Audit.WantsRequest() {
		p.audit(c)
	}
	p.options, err = patchOptions(c, p.contentType)
	return
}

// audit adds the patch to the audit event, as JSON, unless it cannot be parsed and is refused later.
func (p *patching) audit(c *Call) {
	data, err := applyBody(p.contentType, p.body)
	if err == nil && p.contentType == codecs.PatchApplyYAML {
		data, err = yaml.ToJSON(p.body)
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
