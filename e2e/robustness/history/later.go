package history

import (
	"fmt"
	"time"
)

// Rest is the remainder of a list that a client continued with the token that a server returned when the revision of the list was gone.
type Rest struct {
	Client   string        `json:"c"`
	Server   int           `json:"s"` // of the first page
	Scope    Scope         `json:"scope"`
	Selector Selector      `json:"sel"`
	Form     Form          `json:"form,omitempty"`
	After    Item          `json:"after"`           // the last object of the pages before
	Token    bool          `json:"token,omitempty"` // the refusal contained one
	Call     time.Duration `json:"call"`
	Outcome  Outcome       `json:"out"` // of the last page
	Pages    []Page        `json:"pages,omitempty"`
}

// String describes the rest on one line.
func (r *Rest) String() string {
	s := fmt.Sprintf("%s %s at server %d: the rest of the list %s/%s %s after %s -> %s", stamp(r.Call), r.Client, r.Server, r.Scope.Resource, r.Scope.Namespace, r.Selector, r.After.Name, r.Outcome)
	for _, p := range r.Pages {
		s += fmt.Sprintf(" [version %d, %d items]", p.Version, len(p.Items))
	}
	return s
}

// Due is a result that the servers promise some time after its cause, such as a place of a quota after the deletion of the object that
// had it.
type Due struct {
	Property string        `json:"property"` // that promises it
	What     string        `json:"what"`
	Server   int           `json:"s"`                 // that acknowledged the cause
	Alone    bool          `json:"alone,omitempty"`   // that server alone brings the result, and shows it
	Stamped  bool          `json:"stamped,omitempty"` // the clock of the database, or of that server, decides when it comes
	Clocked  bool          `json:"clock,omitempty"`   // it comes only while the clocks of all servers are right
	Within   time.Duration `json:"within"`
	Cause    time.Duration `json:"cause"` // when the cause was acknowledged
	Came     time.Duration `json:"came,omitempty"`
	Until    time.Duration `json:"until"` // when the client saw the result, or stopped looking for it
}

func (d *Due) String() string {
	if d.Came == 0 {
		return fmt.Sprintf("%s..%s %s does not come", stamp(d.Cause), stamp(d.Until), d.What)
	}
	return fmt.Sprintf("%s..%s %s", stamp(d.Cause), stamp(d.Came), d.What)
}

// Past is the list of the writes of an object, in the group history.rowlock.dev. The newest write comes first.
type Past struct {
	Client string        `json:"c"`
	Server int           `json:"s"` // of the first page
	Key    Key           `json:"key"`
	Call   time.Duration `json:"call"`
	Return time.Duration `json:"ret"`             // of the last page
	Whole  bool          `json:"whole,omitempty"` // no page is missing
	Writes []PastWrite   `json:"writes,omitempty"`
}

// PastWrite is a write in such a list.
type PastWrite struct {
	Change   string `json:"change"`
	Previous uint64 `json:"prev,omitempty"` // the write before it; 0: none, or it is not kept
	State    State  `json:"st"`             // after the write, or before the end of the object
}

// String describes the list on one line.
func (p *Past) String() string {
	s := fmt.Sprintf("%s..%s %s at server %d: the writes of %s:", stamp(p.Call), stamp(p.Return), p.Client, p.Server, p.Key)
	for i := range p.Writes {
		s += fmt.Sprintf(" %s %d", p.Writes[i].Change, p.Writes[i].State.Version)
	}
	if !p.Whole {
		s += " and more"
	}
	return s
}
