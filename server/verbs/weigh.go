package verbs

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
)

// weigh lets a body in that is going to be decoded into an obj: one that is too heavy is
// refused, and a heavy one waits until there is room for it beside the others. The room
// is the call's until it has been answered.
func (h *Handler) weigh(c *Call, from codecs.Codec, body []byte, obj runtime.Object) error {
	weight, err := codecs.Weigh(from, body, obj)
	if err != nil {
		return err
	}
	return h.hold(c, weight)
}

func (h *Handler) hold(c *Call, weight int64) error {
	if weight <= c.held {
		return nil
	}
	c.done() // never wait for room while holding some: others might do the same
	leave, err := h.Gate.Enter(c.R.Context(), weight)
	if err == nil {
		c.held, c.leave = weight, leave
	}
	return err
}

func (c *Call) done() {
	if c.leave != nil {
		c.leave()
	}
	c.held, c.leave = 0, nil
}
