package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/apply/jsonpatch"
)

// maxOperations bounds the length of a JSON Patch.
const maxOperations = 10000

// jsonPatchOp is the form of a JSON Patch operation, for strict decoding.
type jsonPatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

// operations applies a JSON Patch.
func (p *Patch) operations(ctx context.Context, encoded []byte) (out []byte, problems []string, err error) {
	if p.Strictness != codecs.Ignore {
		var ops []jsonPatchOp
		strict, err := kjson.UnmarshalStrict(p.Body, &ops)
		if err != nil {
			// Clients see the Go type in this message; a stock server's is named so.
			text := strings.ReplaceAll(err.Error(), "apply.jsonPatchOp", "handlers.jsonPatchOp")
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + text)
		}
		for _, e := range strict {
			problems = append(problems, "json patch "+e.Error())
		}
	}
	ops, err := DecodeOperations(p.Body)
	if err != nil {
		return nil, nil, err
	}
	out, err = ops.Apply(encoded, budget.New(ctx, "the JSON patch"))
	if err != nil {
		if ended(err) {
			return nil, nil, err
		}
		return nil, nil, unprocessable(err)
	}
	return out, problems, nil
}

// ended reports errors of a budget, which need no wrapping.
func ended(err error) bool {
	var api apierrors.APIStatus
	return errors.As(err, &api) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// DecodeOperations reads an untrusted JSON Patch, with a bound on its work. Errors: 400 for an invalid patch, 413 for too
// many operations.
func DecodeOperations(body []byte) (jsonpatch.Patch, error) {
	ops, err := jsonpatch.Decode(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(ops) > maxOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(ops)))
	}
	return ops, nil
}

// mergeDocument applies a merge patch.
func (p *Patch) mergeDocument(ctx context.Context, encoded []byte) (out []byte, problems []string, err error) {
	if p.Strictness != codecs.Ignore {
		var tree map[string]any
		strict, err := kjson.UnmarshalStrict(p.Body, &tree)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
		}
		problems = texts(strict)
	}
	out, err = jsonpatch.Merge(encoded, p.Body, budget.New(ctx, "the merge patch"))
	if errors.Is(err, jsonpatch.ErrNoPatch) {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return out, problems, err
}
