package verbs

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
)

// weigh lets a body in that is going to be decoded into an obj: one that is too heavy is
// refused, and a heavy one waits until there is room for it beside the others. The room
// is the call's until it is answered: a client may take its time to read that.
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
	c.Done() // never wait for room while holding some: others might do the same
	c.held = 0
	leave, err := h.Gate.Enter(c.R.Context(), visitor(c), weight)
	if err == nil {
		c.held, c.Release = weight, leave
	}
	return err
}

// visitor is whose turn a call takes at the gate.
func visitor(c *Call) string {
	if c.User == nil {
		return ""
	}
	return c.User.Name
}
