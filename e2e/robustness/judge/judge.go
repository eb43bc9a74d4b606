// Package judge holds a history against the promises of the server. Its functions are pure: the same history always has the
// same violations. Each costs time in proportion to the history, up to sorting; the check of registers is bounded by the
// number of operations on each object.
package judge

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Properties are the properties that are judged, with the promise of each.
var Properties = []struct{ Name, Promise string }{
	{"revisions", "Revisions are contiguous, none is given twice or taken back"},
	{"compaction", "Compaction and recovery leave exactly the objects that the log says exist"},
	{"retention", "Compaction deletes no history before its time, whatever clocks say, unless an operator asks for that, and the log soon after its time"},
	{"writes", "An acknowledged write exists with exactly its content, a refused one does not, one without an answer is one or the other, once"},
	{"order", "A write that begins after another was acknowledged, or seen, has a higher revision"},
	{"reads", "A read shows a state that existed, not older than any that a client had seen before it, or than it asked for"},
	{"register", "Creates, sets, swaps, deletes and reads of one object are linearizable over all servers (porcupine)"},
	{"set", "Members of a set that were added stay, and reads of it by all servers follow one order"},
	{"lifecycle", "An object has one UID, stays while it has finalizers, and goes with the last; its time of creation stays, and a write of its status changes no generation"},
	{"namespaces", "A namespace, or a definition, goes after a client has deleted it, and with all that was in it, and nothing is made in it afterwards"},
	{"owners", "The garbage collector deletes no object that has an owner, or was orphaned, and no owner in the foreground before what it waits for"},
	{"holds", "No address, port or place of a quota is given to more than there is of it, and a place of a quota is free again soon after its object was deleted"},
	{"expiry", "An Event stays until its time is over, and goes then"},
	{"watch-ordered", "Events of a watch come in the order of revisions"},
	{"watch-unique", "No event comes twice"},
	{"watch-atomic", "The event of a revision is the whole write"},
	{"watch-reliable", "No event is missing between two that came"},
	{"watch-resumable", "A watch that begins at a revision has the next event first, and is refused only if the log no longer has that"},
	{"watch-bookmarkable", "A bookmark comes after all events up to its revision"},
	{"watch-previous", "A DELETED event has the last state"},
	{"watch-filtered", "Events are those that the selector and the namespace choose, with the right type"},
	{"watch-future", "No event and no bookmark comes before its write"},
	{"watch-prompt", "An event comes soon after its write was acknowledged, if nothing keeps its server from its database"},
	{"watch-timed", "A watch ends after the time that it asked for, and after a bookmark"},
	{"watch-initial", "The initial events of a streaming list are a state that existed"},
	{"list", "A list is a state that existed, and as new as it asked for"},
	{"pages", "The pages of a list are of one revision; the rest of one whose revision is gone has all that follows"},
	{"exact", "A read of an old revision shows what was then, as long as that is kept, and the history of an object has each of its writes"},
	{"served", "Custom resources come in the version that a client asked for, and watches of them end when it is served no more"},
	{"cache", "The caches of informers equal the store in the end, and no object in them goes back"},
	{"rights", "A granted right begins to work, a revoked right or token stops working, for watches that run, too, reviews agree, no client reads an object without a right to it, no credential works that is not valid, and an aggregated server learns the user of a request and no credentials"},
	{"rules", "No request is done that its object, its schema, an admission plugin or the rights of its user forbid, and none is refused that a policy or a webhook excludes"},
	{"encryption", "A Secret is stored encrypted, by the first key of the file that its server has loaded, and is readable with each key of the file; no file has it in the clear, and no cache file has it"},
	{"audit", "Each request that was answered is in the audit log of its server, once in each stage, with its verb, object, user and code, and with bodies only at a level that has them"},
	{"migrations", "After a storage migration no object is stored in another version, and none is lost; storedVersions has each version in which objects may be stored"},
	{"fairness", "A request belongs to the first flow schema that matches it; a user who floods one level delays no other one; no request waits without end, and none of an exempt level waits"},
	{"leads", "A lead is taken from nobody who renews it, and a Lease goes to the best of its candidates"},
	{"liveness", "Every client continues after the faults, without a restart, no server goes on to refuse what it may do, and controllers restore what each namespace has"},
	{"verify", "store verify finds nothing, and a backup made meanwhile restores to a database that it finds nothing in"},
}

// Violation is a promise that a history breaks.
type Violation struct {
	Property string   `json:"property"`
	Round    int      `json:"round"`
	What     string   `json:"what"`
	History  []string `json:"history"` // the shortest that shows it
}

func (v *Violation) String() string {
	s := fmt.Sprintf("%s: %s", v.Property, v.What)
	for _, line := range v.History {
		s += "\n    " + line
	}
	return s
}

// Verdict is the result of judging a history.
type Verdict struct {
	Violations []Violation
	Judged     map[string]int // how many records each property was held against
	Open       map[string]int // how many records could not be judged, by the reason

	Stalls           []history.Stall // of the program, and those of servers that no fault explains
	Program, Servers Stalls          // in all
}

type judge struct {
	*ledger
	r       *history.Round
	v       Verdict
	creates map[history.Key][]*history.Op
	marks   map[history.Key]*history.Op // the first delete of an object that has finalizers, or is a Pod

	absences map[absence]spans
}

// mostOfProperty bounds the violations of one property that are reported.
const mostOfProperty = 5

func (j *judge) violate(property string, lines []string, format string, args ...any) {
	n := 0
	for _, v := range j.v.Violations {
		if v.Property == property {
			n++
		}
	}
	if n < mostOfProperty {
		j.v.Violations = append(j.v.Violations, Violation{property, j.r.Number, fmt.Sprintf(format, args...), lines})
	}
}

func (j *judge) judged(property string) { j.v.Judged[property]++ }

func (j *judge) open(why string) { j.v.Open[why]++ }

// Round judges a round.
func Round(r *history.Round) Verdict {
	j := &judge{r: r, v: Verdict{Judged: map[string]int{}, Open: map[string]int{}}, absences: map[absence]spans{}}
	j.ledger = newLedger(r)
	for _, check := range []func(){
		j.table, j.writes, j.shares, j.retention, j.deletes, j.times, j.order, j.asked, j.blackouts, j.lifecycles, j.namespaces, j.owners, j.holds, j.dues, j.checks, j.audits, j.expiry, j.reads, j.moments, j.registers, j.sets, j.streams, j.lists, j.rests, j.pasts, j.caches, j.rights, j.administered, j.refusals, j.answers, j.leads, j.liveness, j.stalls,
	} {
		check()
	}
	return j.v
}

// leftOut is more revisions than are written between two readings of the table: a server that takes its database for an older
// one leaves out a million.
const leftOut = 500_000

// table reports errors in the revisions of the table, and checks that its live rows are those of the log.
func (j *judge) table() {
	for _, text := range j.r.Table {
		j.violate("revisions", nil, "%s", text)
	}
	for i, s := range j.r.Segments {
		for range s.Rows {
			j.judged("revisions")
		}
		if i > 0 && s.From < j.r.Segments[i-1].To {
			j.violate("revisions", nil, "the table was at revision %d, and then at %d", j.r.Segments[i-1].To, s.From)
		}
		if i > 0 && s.From > j.r.Segments[i-1].To+leftOut && len(j.r.Losses) == 0 {
			j.violate("revisions", nil, "revisions are left out, although nothing was lost: the newest was %d, and the log begins anew at %d", j.r.Segments[i-1].To, s.From)
		}
		if s.Live == nil {
			continue
		}
		live := map[history.Key]history.Row{}
		for _, r := range s.Initial {
			live[r.Key] = r
		}
		for _, r := range s.Rows {
			if live[r.Key] = r; r.Deleted {
				delete(live, r.Key)
			}
		}
		for _, r := range s.Live {
			j.judged("compaction")
			want, there := live[r.Key]
			if delete(live, r.Key); !there || want.Revision != r.Revision || hash(want.State) != hash(r.State) {
				j.violate("compaction", rowLines(want, r), "the table has %s at revision %d, and its log left it at %d", r.Key, r.Revision, want.Revision)
			}
		}
		for _, r := range live {
			j.violate("compaction", rowLines(r), "the table lacks %s, which its log left at revision %d", r.Key, r.Revision)
		}
	}
}

// Bounds of a lead that is taken from its holder: the holder had it for longer than that when another one was found, and
// nothing kept servers from running, or from their database, for so long before. Once may be a machine that stood still.
const (
	leadLeft = 100 * time.Millisecond
	leadCalm = 4 * time.Second
	leadOnce = 1
)

// leads checks that leads are taken only from holders that have died, or could not renew them.
func (j *judge) leads() {
	j.v.Judged["leads"] += j.r.Holders
	var taken []string
	for i := range j.r.Leads {
		l := &j.r.Leads[i]
		if l.Left > leadLeft && l.At > j.r.Began+leadCalm && j.away(cutOff, every).within(l.At-leadCalm, l.At) == 0 {
			taken = append(taken, l.String())
		}
	}
	if len(taken) > leadOnce {
		j.violate("leads", taken[:min(len(taken), 6)], "leads are taken from holders that renew them, %d times", len(taken))
	}
}

// void reports whether a revision is one that PostgreSQL lost, and how long ago at a time, without the time that something stood still.
func (j *judge) void(revision uint64, at time.Duration) (since time.Duration, lost bool) {
	for _, l := range j.r.Losses {
		if revision > l.Found && revision <= l.Found+leftOut {
			return at - l.End - j.away(stood, every).within(l.End, at), true
		}
	}
	return 0, false
}

// voidTime is the time after a loss by which all servers have noticed it.
const voidTime = 10 * time.Second

// beforeLoss returns the time of the first loss of the database. What the clients know together, such as the order of
// writes, is checked up to then.
func (j *judge) beforeLoss() time.Duration {
	least := time.Duration(math.MaxInt64)
	for _, l := range j.r.Losses {
		least = min(least, l.Begin)
	}
	return least
}

func hash(s *history.State) string {
	if s == nil {
		return ""
	}
	return s.Hash
}

func rowLines(rows ...history.Row) (lines []string) {
	for _, r := range rows {
		if r.Revision != 0 {
			lines = append(lines, rowLine(&r))
		}
	}
	return lines
}

func rowLine(r *history.Row) string {
	what := "written"
	if r.Deleted {
		what = "deleted"
	}
	s := fmt.Sprintf("row %d: %s %s", r.Revision, r.Key, what)
	if r.State != nil {
		s += fmt.Sprintf(" on=%v %v", r.State.On, r.State.Fields)
	}
	return s
}

// liveness reports clients that did not reach the end, and errors that checks of the database found.
func (j *judge) liveness() {
	j.v.Judged["liveness"] += len(j.r.Streams)
	for _, text := range j.r.Stuck {
		j.violate("liveness", nil, "%s", text)
	}
	j.judged("verify")
	for _, text := range j.r.Verify {
		j.violate("verify", nil, "%s", text)
	}
	for _, f := range j.r.Faults {
		if f.Wrong != "" {
			j.violate("liveness", []string{f.String()}, "%s", f.Wrong)
		}
	}
}

func opLines(ops ...*history.Op) (lines []string) {
	ops = slices.DeleteFunc(slices.Clone(ops), func(o *history.Op) bool { return o == nil })
	slices.SortStableFunc(ops, func(a, b *history.Op) int { return int(a.Call - b.Call) })
	for _, o := range ops {
		lines = append(lines, o.String())
	}
	return lines
}
