package history

import (
	"fmt"
	"time"
)

// Check is an answer that a client could judge by itself, because no other client writes the object.
type Check struct {
	Property string        `json:"property"` // that promises it
	What     string        `json:"what"`
	Server   int           `json:"s"`
	Call     time.Duration `json:"call"`
	Return   time.Duration `json:"ret"`
	Wrong    string        `json:"wrong,omitempty"` // what is wrong with the answer; "": nothing
}

func (c *Check) String() string {
	s := fmt.Sprintf("%s..%s %s at server %d", stamp(c.Call), stamp(c.Return), c.What, c.Server)
	if c.Wrong != "" {
		s += ": " + c.Wrong
	}
	return s
}
