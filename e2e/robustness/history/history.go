// Package history holds the records of a run of e2e/robustness: requests with their answers, lists, watch streams, rows of the
// table, rights, and faults, each with the time since the run began.
//
//	history.go  the records of writes, the table, rights and faults
//	reads.go    lists, watches and caches
//	later.go    results that must follow a cause
//	checks.go   promises that clients check themselves, and audit logs
//	round.go    the records of one round, how they are collected, and their JSON form, which can be judged again
//	parse.go    objects of the API and the table as states
package history

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Key names an object. Resource is the plural with the group, as in the table ("leases.coordination.k8s.io").
type Key struct {
	Resource  string `json:"r"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
}

func (k Key) String() string { return k.Resource + "/" + k.Namespace + "/" + k.Name }

// Scope is a resource in a namespace, or in all if that is empty, which a list or a watch covers.
type Scope struct {
	Resource  string `json:"r"`
	Namespace string `json:"ns"`
}

// Everywhere returns the scope with all namespaces.
func (s Scope) Everywhere() Scope { return Scope{Resource: s.Resource} }

// Scope returns the scope that the object is in.
func (k Key) Scope() Scope { return Scope{k.Resource, k.Namespace} }

// State is an object at a version.
type State struct {
	Version uint64            `json:"v"`
	Fields  map[string]string `json:"f,omitempty"` // that writers set: each value is the ID of the operation that set it
	On      bool              `json:"on,omitempty"`
	Hash    string            `json:"h"` // of the whole object without its version

	Meta       string `json:"m,omitempty"`     // the hash of the object as clients see it that ask for metadata only
	Node       string `json:"node,omitempty"`  // that a Pod is bound to
	Phase      string `json:"phase,omitempty"` // of a Pod
	Side       bool   `json:"side,omitempty"`  // its spec.side is yes, which is the label on of a custom resource once more
	Made       string `json:"made,omitempty"`  // its creationTimestamp
	UID        string `json:"u,omitempty"`
	Generation int64  `json:"g,omitempty"`
	Held       bool   `json:"held,omitempty"`  // it has finalizers
	Going      bool   `json:"going,omitempty"` // it is marked for deletion
}

// Outcome is the result of a request as its client knows it.
type Outcome string

// Outcomes. Refused means that the server answered that nothing was done.
const (
	OK       Outcome = "ok"
	Conflict Outcome = "conflict"
	NotFound Outcome = "not found"
	Exists   Outcome = "exists"
	Refused  Outcome = "refused"
	Expired  Outcome = "expired"
	Denied   Outcome = "denied"
	Unknown  Outcome = "unknown"
)

// Kinds of operations.
const (
	Get              = "get"
	GetScale         = "get scale"
	Create           = "create"
	Set              = "set"   // a merge patch without a version
	Swap             = "swap"  // a PUT at a version
	Apply            = "apply" // server-side apply by the owner of a field
	Status           = "status"
	Scale            = "scale" // a write of the number of replicas, through the subresource
	Delete           = "delete"
	DeleteCollection = "deletecollection"
	Mark             = "mark"    // a delete of an object with finalizers, which stays
	Release          = "release" // a patch that takes the finalizers of a marked object away, and thereby deletes it
	Renew            = "renew"   // a write of an Event, which then lives for another EventTTL
	Vacate           = "vacate"  // a delete of a namespace, or of a definition
	Bind             = "bind"    // a binding of a Pod to a node
)

// For how long servers keep something.
const (
	EventTTL     = 10 * time.Second // Events
	LogRetention = 8 * time.Second  // changes, for watches that begin at an old version
	Retention    = 20 * time.Second // old states, for lists of an old version
)

// Op is a request about one object, or a deletecollection of a scope.
type Op struct {
	ID      string        `json:"id"`
	Client  string        `json:"c"`
	Server  int           `json:"s"`
	Kind    string        `json:"k"`
	Key     Key           `json:"key"`
	Field   string        `json:"field,omitempty"`   // that the operation sets, to its ID
	Value   string        `json:"val,omitempty"`     // of a field that others set to the same value; "": the ID
	Also    string        `json:"also,omitempty"`    // a second field that an apply sets
	On      *bool         `json:"on,omitempty"`      // whether the object has the label on=yes then; nil: as before
	Prefix  bool          `json:"prefix,omitempty"`  // the server chooses the name, which begins with that of Key
	Expect  uint64        `json:"expect,omitempty"`  // the version that the object must have; 0: any
	Creates bool          `json:"creates,omitempty"` // a PUT that creates an object that does not exist, whatever version it names
	Dry     bool          `json:"dry,omitempty"`     // a dry run, which changes nothing
	Never   bool          `json:"never,omitempty"`   // it has a precondition that no object fulfils, or breaks a rule
	Tests   bool          `json:"tests,omitempty"`   // a JSON patch, which does not fit every object
	Force   bool          `json:"force,omitempty"`   // an apply that takes fields from their owners
	AtLeast uint64        `json:"min,omitempty"`     // a get at a version not older than this
	Cached  bool          `json:"cached,omitempty"`  // a get at any version
	Call    time.Duration `json:"call"`
	Return  time.Duration `json:"ret"`
	Outcome Outcome       `json:"out"`
	Code    int           `json:"code,omitempty"`
	Error   string        `json:"err,omitempty"`
	Got     *State        `json:"got,omitempty"`
	Audit   string        `json:"audit,omitempty"` // the level at which the servers record it; "": they need not
	// AuditEnd: they record only its last stage.
	AuditEnd bool `json:"auditend,omitempty"`
}

// Faulty reports whether an answer says that the request itself is wrong, whatever the server's state is.
func Faulty(code int) bool {
	switch code {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// Loose reports whether the values of an object do not say which operation wrote them.
func (k Key) Loose() bool { return strings.HasPrefix(k.Name, "toggle") }

// Fields that writers treat in a special way.
const (
	Contested = "contested" // owners take it from each other by force
	Shared    = "shared"    // owners apply it together, with the same value
	Note      = "note"      // an annotation, which is no part of the spec
)

// Reads reports whether the operation reads an object, or a part of it.
func (o *Op) Reads() bool { return o.Kind == Get || o.Kind == GetScale }

// Writes reports whether the operation changes something.
func (o *Op) Writes() bool { return !o.Reads() && !o.Dry }

// String describes the operation on one line.
func (o *Op) String() string {
	s := fmt.Sprintf("%s..%s %s at server %d: %s %s", stamp(o.Call), stamp(o.Return), o.Client, o.Server, o.Kind, o.Key)
	if o.Field != "" {
		s += " " + o.Field + "=" + o.ID
	}
	if o.Expect != 0 {
		s += fmt.Sprintf(" expecting version %d", o.Expect)
	}
	if o.Dry {
		s += " as a dry run"
	}
	if o.Never {
		s += ", which breaks a rule"
	}
	if o.Force {
		s += " by force"
	}
	if o.AtLeast != 0 {
		s += fmt.Sprintf(" not older than %d", o.AtLeast)
	}
	s += " -> " + string(o.Outcome)
	if o.Code != 0 {
		s += " " + strconv.Itoa(o.Code)
	}
	if o.Got != nil {
		s += fmt.Sprintf(" version %d %v", o.Got.Version, o.Got.Fields)
	}
	if o.Error != "" {
		s += " (" + o.Error + ")"
	}
	return s
}

func stamp(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

// Row is a row of the table.
type Row struct {
	Revision uint64 `json:"rev"`
	Key      Key    `json:"key"`
	Created  uint64 `json:"created"`
	Deleted  bool   `json:"del,omitempty"`
	State    *State `json:"st,omitempty"` // of our objects
	Stored   string `json:"as,omitempty"` // the apiVersion in which a custom resource is stored
	// At is after the table was read that had the row first.
	At time.Duration `json:"at,omitempty"`
}

// Segment is a part of the table's log that was read without a gap.
type Segment struct {
	From    uint64 `json:"from"` // the state is of this revision
	To      uint64 `json:"to"`
	Initial []Row  `json:"initial,omitempty"`
	Rows    []Row  `json:"rows,omitempty"`
	Live    []Row  `json:"live,omitempty"` // the live rows at To, read at the end; nil: not read
}

// Floor records the floor of the table's log: watches from before Revision cannot be served.
type Floor struct {
	At       time.Duration `json:"at"` // before it was read
	Revision uint64        `json:"rev"`
	Past     uint64        `json:"past"` // lists of older states cannot be served
}

// Loss records that PostgreSQL lost commits: a standby without them was promoted.
type Loss struct {
	Begin time.Duration `json:"begin"` // before the primary was taken away
	End   time.Duration `json:"end"`   // when all servers used the standby
	Found uint64        `json:"found"` // its newest revision then
}

// Lead is a lead that another holder has taken, by the table.
type Lead struct {
	At   time.Duration `json:"at"` // when it was found
	Name string        `json:"n"`
	From string        `json:"from"`
	To   string        `json:"to"`
	Left time.Duration `json:"left"` // for how long the former holder had it when the other was found, as it renewed it last
}

func (l *Lead) String() string {
	return fmt.Sprintf("%s lead %q, which %s had for %s more, is taken by %s", stamp(l.At), l.Name, l.From, l.Left.Round(time.Millisecond), l.To)
}

// Reload records that a server loaded all objects anew, because the log no longer reached back to its place. It ends its watches.
type Reload struct {
	Server int           `json:"s"`
	Begin  time.Duration `json:"begin"`
	End    time.Duration `json:"end"`
}

func (r *Reload) String() string {
	return fmt.Sprintf("%s..%s server %d loads all objects anew", stamp(r.Begin), stamp(r.End), r.Server)
}

// What an Access is, besides a use of a right.
const (
	Watching = "watch"  // an event of a watch
	Rule     = "rule"   // a request that breaks the rule that is its subject
	Hidden   = "hidden" // a request that must be refused in the same way whether or not its object exists
	Ended    = "ended"  // a use of a credential whose time is over, or has not begun
	Free     = "free"   // a request that nothing forbids, whatever its subject allows at the time
)

// Access is a request of a user whose rights change, or an event that came to a watch of that user.
type Access struct {
	Subject string        `json:"sub"`
	Server  int           `json:"s"`
	What    string        `json:"what"`
	Timed   bool          `json:"timed,omitempty"` // by a token that is valid for some time
	Version uint64        `json:"v,omitempty"`     // of the event of a watch
	Want    int           `json:"want,omitempty"`  // the code with which a request that breaks a rule is refused
	Call    time.Duration `json:"call"`
	Return  time.Duration `json:"ret"`
	Code    int           `json:"code"`
}

func (a *Access) String() string {
	return fmt.Sprintf("%s..%s %s at server %d: %s -> %d", stamp(a.Call), stamp(a.Return), a.Subject, a.Server, a.What, a.Code)
}

// Refusal is a request that a client repeats, as a server answers it again and again, but never as it should.
type Refusal struct {
	Client string        `json:"c"`
	Server int           `json:"s"`
	What   string        `json:"what"`
	First  time.Duration `json:"first"` // before the first request
	Last   time.Duration `json:"last"`  // after the last answer
	Times  int           `json:"times"`
	Code   int           `json:"code"` // of the last answer
}

func (r *Refusal) String() string {
	return fmt.Sprintf("%s..%s %s at server %d: %s -> %d, %d times", stamp(r.First), stamp(r.Last), r.Client, r.Server, r.What, r.Code, r.Times)
}

// Right is a change of the rights of a subject. From Call on the new right may hold; a revoked one must not hold
// from some time after Return on.
type Right struct {
	Subject string        `json:"sub"`
	Granted bool          `json:"granted"`
	Server  int           `json:"srv,omitempty"` // that acknowledged it, from 1 on; 0: not known
	Call    time.Duration `json:"call"`
	Return  time.Duration `json:"ret"`
	Outcome Outcome       `json:"out"`
}

func (r *Right) String() string {
	verb := "revoke"
	if r.Granted {
		verb = "grant"
	}
	return fmt.Sprintf("%s..%s %s %s at server %d -> %s", stamp(r.Call), stamp(r.Return), verb, r.Subject, r.Server-1, r.Outcome)
}

// Hold is something of which there is only so much, such as an address, that an object of a client had for certain: from the answer
// to the request that took it to the request that gave it back.
type Hold struct {
	What   string        `json:"what"`
	Most   int           `json:"most"` // how many may have it at the same time
	Holder string        `json:"by"`
	From   time.Duration `json:"from"`
	Until  time.Duration `json:"until,omitempty"` // 0: it was not given back in the round
}

func (h *Hold) String() string {
	return fmt.Sprintf("%s..%s %s has %s", stamp(h.From), stamp(h.Until), h.Holder, h.What)
}

// Life is an object that something else than a request for it may delete, such as the garbage collector, and from when on.
type Life struct {
	Key   Key           `json:"key"`
	Until time.Duration `json:"until"` // the first request that allows its deletion
	Why   string        `json:"why"`   // that allows it
	// Before is an owner that is deleted in the foreground: it stays for as long as the object is there.
	Before *Key `json:"before,omitempty"`
}

func (l *Life) String() string { return fmt.Sprintf("%s %s may go: %s", stamp(l.Until), l.Key, l.Why) }

// Fault is something that was broken, and mended.
type Fault struct {
	Name     string        `json:"name"`
	What     string        `json:"what"`
	Server   int           `json:"s"` // -1: all, or the database
	Begin    time.Duration `json:"begin"`
	End      time.Duration `json:"end"`
	Store    bool          `json:"store,omitempty"`    // it cut servers off from their database
	From     time.Duration `json:"from,omitempty"`     // when it began to do so; 0: at once
	Compacts bool          `json:"compacts,omitempty"` // an operator deletes history
	Clock    bool          `json:"clock,omitempty"`    // it set the wall clock of servers, which keeps them from nothing
	Stamps   bool          `json:"stamps,omitempty"`   // by that clock the database knows when something expires
	Wrong    string        `json:"wrong,omitempty"`    // a promise that the fault itself found broken
	NotMade  string        `json:"notmade,omitempty"`  // why nothing was broken; "": it was
}

// Stall is a time during which a process did not run, or hardly: the program of the run itself, and then its clients and
// probably the whole machine, or a server.
type Stall struct {
	Server int           `json:"s"` // -1: the program
	Begin  time.Duration `json:"begin"`
	End    time.Duration `json:"end"`
}

func (s *Stall) String() string {
	who := "the program"
	if s.Server >= 0 {
		who = fmt.Sprintf("server %d", s.Server)
	}
	return fmt.Sprintf("%s..%s %s stands still", stamp(s.Begin), stamp(s.End), who)
}

func (f *Fault) String() string {
	return fmt.Sprintf("%s..%s fault %s: %s", stamp(f.Begin), stamp(f.End), f.Name, f.What)
}
