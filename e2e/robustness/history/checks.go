package history

import (
	"fmt"
	"time"
)

// Check is one promise that a client compared with an answer, or with what it found in the table or in a file.
type Check struct {
	Property string        `json:"property"` // that contains the promise
	What     string        `json:"what"`
	Server   int           `json:"s"` // -1: none in particular
	Call     time.Duration `json:"call"`
	Return   time.Duration `json:"ret"`
	Calm     bool          `json:"calm,omitempty"`  // the promise holds only while no fault impairs the server
	Clocked  bool          `json:"clock,omitempty"` // it holds only while the clocks of all servers are right
	Wrong    string        `json:"wrong,omitempty"` // how the promise was broken; "" if it was kept
	Seen     []string      `json:"seen,omitempty"`  // the requests and answers that show it
}

func (c *Check) String() string {
	s := fmt.Sprintf("%s..%s %s at server %d", stamp(c.Call), stamp(c.Return), c.What, c.Server)
	if c.Wrong != "" {
		s += ": " + c.Wrong
	}
	return s
}

// Audited is an event of a server's audit log about a request of the traffic, which sends the ID of its operation.
type Audited struct {
	ID        string `json:"id"`
	Server    int    `json:"s"`
	Stage     string `json:"stage"`
	Level     string `json:"level"`
	Verb      string `json:"verb"`
	User      string `json:"user"`
	Key       Key    `json:"key"` // of the object in the event
	Code      int    `json:"code,omitempty"`
	Request   bool   `json:"req,omitempty"`  // the event has the object of the request
	Response  bool   `json:"resp,omitempty"` // the event has the object of the answer
	Version   uint64 `json:"v,omitempty"`    // of the object of the answer
	Truncated bool   `json:"cut,omitempty"`
}

func (a *Audited) String() string {
	return fmt.Sprintf("audit log of server %d: %s %s of %s by %q at level %s, code %d, audit ID %s", a.Server, a.Stage, a.Verb, a.Key, a.User, a.Level, a.Code, a.ID)
}
