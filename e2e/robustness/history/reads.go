package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Item is an object in a list or an event.
type Item struct {
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
	Served    string `json:"as,omitempty"`     // the apiVersion of a custom resource
	Holder    string `json:"holder,omitempty"` // of a Lease, as the row of a Table shows it
	State     State  `json:"st"`
}

// Page is one chunk of a list.
type Page struct {
	Version uint64 `json:"v"`
	Items   []Item `json:"items,omitempty"`
	More    bool   `json:"more,omitempty"`
	Rest    *int   `json:"rest,omitempty"` // the number of further items that the server announces
}

// Match defines which state a list asks for.
type Match string

// Matches. Latest is a list without a version.
const (
	Latest   Match = ""
	Any      Match = "any" // version 0
	NotOlder Match = "not older"
	Exact    Match = "exact"
)

// List is a list in one or several pages.
type List struct {
	Client   string        `json:"c"`
	Server   int           `json:"s"` // of the first page; the others may come from other servers
	Scope    Scope         `json:"scope"`
	Selector Selector      `json:"sel"`
	Match    Match         `json:"match,omitempty"`
	Asked    uint64        `json:"asked,omitempty"`
	Limit    int           `json:"limit,omitempty"`
	Form     Form          `json:"form,omitempty"`
	Served   string        `json:"as,omitempty"` // the apiVersion that custom resources must have
	Call     time.Duration `json:"call"`
	Return   time.Duration `json:"ret"`               // of the first page
	Refused  time.Duration `json:"refused,omitempty"` // when it was answered that the state is gone
	Outcome  Outcome       `json:"out"`               // of the last page
	Code     int           `json:"code,omitempty"`
	Pages    []Page        `json:"pages,omitempty"`
	Final    bool          `json:"final,omitempty"`  // made when all was quiet
	Behind   *Key          `json:"behind,omitempty"` // the object that it begins behind: the last one of a list that was refused with 410
}

// String describes the list on one line.
func (l *List) String() string {
	s := fmt.Sprintf("%s..%s %s at server %d: list %s/%s %s %s %d -> %s", stamp(l.Call), stamp(l.Return), l.Client, l.Server, l.Scope.Resource, l.Scope.Namespace, l.Selector, l.Match, l.Asked, l.Outcome)
	if l.Behind != nil {
		s += " behind " + l.Behind.String()
	}
	for _, p := range l.Pages {
		s += fmt.Sprintf(" [version %d, %d items]", p.Version, len(p.Items))
	}
	return s
}

// Moment is the revision that a server names for a time.
type Moment struct {
	Server   int           `json:"s"`
	Of       time.Duration `json:"of"`
	Revision uint64        `json:"v"`
	At       time.Duration `json:"at"` // when the answer came
}

func (m *Moment) String() string {
	return fmt.Sprintf("%s server %d names revision %d for %s", stamp(m.At), m.Server, m.Revision, stamp(m.Of))
}

// Last returns the last object that came; nil: none.
func (l *List) Last() *Key {
	for _, p := range slices.Backward(l.Pages) {
		if n := len(p.Items); n > 0 {
			return &Key{Resource: l.Scope.Resource, Namespace: cmp.Or(l.Scope.Namespace, p.Items[n-1].Namespace), Name: p.Items[n-1].Name}
		}
	}
	return nil
}

// Form is the form of the objects in a list or a watch: whole ones, in JSON or another encoding, or one with their metadata only.
type Form string

// The forms.
const (
	Whole    Form = ""
	Protobuf Form = "protobuf"
	YAML     Form = "yaml"
	CBOR     Form = "cbor"
	Partial  Form = "PartialObjectMetadata"
	Table    Form = "Table"
)

// HashOf returns the hash that an object in the form has.
func (f Form) HashOf(s *State) string {
	if f == Partial || f == Table {
		return s.Meta
	}
	return s.Hash
}

// Selector chooses objects of a scope: all, or those with label on=yes, or without it, and of these one by its name, Pods by their node or
// phase, or custom resources by their side, or by not having these.
type Selector struct {
	On    bool   `json:"on,omitempty"`
	Off   bool   `json:"off,omitempty"`
	Name  string `json:"n,omitempty"`
	Node  string `json:"node,omitempty"`
	Side  bool   `json:"side,omitempty"`
	Phase string `json:"phase,omitempty"` // which servers do not index
	Not   bool   `json:"not,omitempty"`   // the fields have other values
	Way   int    `json:"way,omitempty"`   // of writing the same
}

// Selects reports whether an object is chosen.
func (s Selector) Selects(name string, st *State) bool {
	return (!s.On || st.On) && (!s.Off || !st.On) && (s.Name == "" || (s.Name == name) != s.Not) && (s.Node == "" || (s.Node == st.Node) != s.Not) && (!s.Side || st.Side != s.Not) && (s.Phase == "" || (s.Phase == st.Phase) != s.Not)
}

var (
	onSelectors  = []string{"on=yes", "on in (maybe,yes)", "on,on notin (no)", "on in (" + others + ",yes)"}
	offSelectors = []string{"on!=yes", "on notin (yes)", "on notin (yes),on notin (" + others + ")"}
	// others are values that no object has. Servers look for so many in another way than for a few.
	others = "z9,z8,z7,z6,z5,z4,z3,z2,z1,y9,y8,y7,y6,y5,y4,y3,y2,y1"
)

// Labels returns the label selector; "": none.
func (s Selector) Labels() string {
	switch {
	case s.On:
		return onSelectors[s.Way%len(onSelectors)]
	case s.Off:
		return offSelectors[s.Way%len(offSelectors)]
	}
	return ""
}

// Fields returns the field selector; "": none.
func (s Selector) Fields() string {
	var terms []string
	is := "="
	if s.Not {
		is = "!="
	}
	if s.Name != "" {
		terms = append(terms, "metadata.name"+is+s.Name)
	}
	if s.Node != "" {
		terms = append(terms, "spec.nodeName"+is+s.Node)
	}
	if s.Phase != "" {
		terms = append(terms, "status.phase"+is+s.Phase)
	}
	if s.Side {
		terms = append(terms, "spec.side"+is+"yes")
	}
	return strings.Join(terms, ",")
}

func (s Selector) String() string {
	text := strings.Trim(s.Labels()+","+s.Fields(), ",")
	if text == "" {
		return "all"
	}
	return text
}

// Event is an event of a watch.
type Event struct {
	At   time.Duration `json:"at"`
	Type string        `json:"t"` // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	Item Item          `json:"i"`
	Ends bool          `json:"ends,omitempty"` // the bookmark behind initial events
	Code int           `json:"code,omitempty"` // of an ERROR
}

func (e *Event) String() string {
	return fmt.Sprintf("%s %s %s version %d on=%v %v", stamp(e.At), e.Type, e.Item.Name, e.Item.State.Version, e.Item.State.On, e.Item.State.Fields)
}

// Stream is one watch request. A client that resumes makes several, each from where the last one was.
type Stream struct {
	Client   string        `json:"c"`
	Server   int           `json:"s"`
	Protocol string        `json:"proto,omitempty"`
	Scope    Scope         `json:"scope"`
	Selector Selector      `json:"sel"`
	From     uint64        `json:"from,omitempty"`
	Initial  bool          `json:"initial,omitempty"` // a streaming list
	Bare     bool          `json:"bare,omitempty"`    // a watch without a version, or of any: the state comes first, and nothing marks its end
	Match    Match         `json:"match,omitempty"`   // of the state that comes first: latest, any, or not older than Asked
	Asked    uint64        `json:"asked,omitempty"`
	Form     Form          `json:"form,omitempty"`
	Served   string        `json:"as,omitempty"`       // the apiVersion that custom resources must have
	Patient  bool          `json:"patient,omitempty"`  // it is long, and its client reads all at once
	Slow     bool          `json:"slow,omitempty"`     // its client does not read at times
	Unmarked bool          `json:"unmarked,omitempty"` // it asks for no bookmarks
	Seconds  int           `json:"secs,omitempty"`     // for which it asks
	Over     bool          `json:"over,omitempty"`     // its answer is complete
	Call     time.Duration `json:"call"`
	Begun    time.Duration `json:"begun,omitempty"` // when the header of the answer came
	End      time.Duration `json:"end"`
	Code     int           `json:"code,omitempty"`
	Events   []Event       `json:"ev,omitempty"`
	Reason   string        `json:"why,omitempty"` // of the end
}

// String describes the stream on one line.
func (s *Stream) String() string {
	kind := "watch from " + strconv.FormatUint(s.From, 10)
	switch {
	case s.Initial:
		kind = "streaming list"
	case s.Bare:
		kind = "watch without a version " + string(s.Match)
	}
	return fmt.Sprintf("%s..%s %s at server %d by %s: %s of %s/%s %s -> %d, %d events, %s", stamp(s.Call), stamp(s.End), s.Client, s.Server, s.Protocol, kind, s.Scope.Resource, s.Scope.Namespace, s.Selector, s.Code, len(s.Events), s.Reason)
}

// Cache is the objects that an informer of client-go holds when all is quiet.
type Cache struct {
	Client string `json:"c"`
	Scope  Scope  `json:"scope"`
	Items  []Item `json:"items"`
	Wrong  string `json:"wrong,omitempty"` // the first event that took an object back in time
}
