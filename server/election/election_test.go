package election_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/election"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const theirs = "example.com/mine"

// at returns a moment so many seconds from now; 0 is none.
func at(seconds float64) *metav1.MicroTime {
	if seconds == 0 {
		return nil
	}
	return &metav1.MicroTime{Time: now.Add(time.Duration(seconds * float64(time.Second)))}
}

// member makes a candidate of "name emulation binary", which was asked and renewed itself so
// many seconds ago.
func member(text string, asked, renewed float64, strategy ...coordinationv1.CoordinatedLeaseStrategy) *election.Candidate {
	f := strings.Fields(text)
	spec := coordinationv1beta1.LeaseCandidateSpec{EmulationVersion: f[1], BinaryVersion: f[2], PingTime: at(-asked), RenewTime: at(-renewed), Strategy: coordinationv1.OldestEmulationVersion}
	if len(strategy) > 0 {
		spec.Strategy = strategy[0]
	}
	created := metav1.NewTime(now.Add(-time.Hour))
	if len(f) > 3 {
		created = metav1.NewTime(now.Add(-2 * time.Hour))
	}
	return election.Read(f[0], 7, created, &spec)
}

// lease returns one that was renewed so many seconds ago and lasts for fifteen.
func lease(holder string, renewed float64, change ...func(*coordinationv1.LeaseSpec)) *coordinationv1.LeaseSpec {
	l := &coordinationv1.LeaseSpec{
		HolderIdentity: &holder, RenewTime: at(-renewed), AcquireTime: at(-100), LeaseDurationSeconds: ptr.To[int32](15),
		LeaseTransitions: ptr.To[int32](3), Strategy: ptr.To(coordinationv1.OldestEmulationVersion),
	}
	for _, c := range change {
		c(l)
	}
	return l
}

func prefers(name string) func(*coordinationv1.LeaseSpec) {
	return func(l *coordinationv1.LeaseSpec) { l.PreferredHolder = &name }
}

func by(s coordinationv1.CoordinatedLeaseStrategy) func(*coordinationv1.LeaseSpec) {
	return func(l *coordinationv1.LeaseSpec) { l.Strategy = &s }
}

// term returns the spec of a Lease of a leader that was just chosen.
func term(holder string) *coordinationv1.LeaseSpec {
	return &coordinationv1.LeaseSpec{
		HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: now}, LeaseDurationSeconds: ptr.To[int32](5), Strategy: ptr.To(coordinationv1.OldestEmulationVersion),
	}
}

// next is term in a Lease that another holder had.
func next(holder string) *coordinationv1.LeaseSpec {
	l := term(holder)
	l.LeaseTransitions = ptr.To[int32](3)
	return l
}

// again is next of who had it already.
func again(holder string) *coordinationv1.LeaseSpec {
	l := next(holder)
	l.AcquireTime = at(-100)
	return l
}

func TestSteps(t *testing.T) {
	oldest := coordinationv1.OldestEmulationVersion
	refresh, leaseEnd := election.Lasts/2, 15*time.Second
	for name, test := range map[string]struct {
		lease *coordinationv1.LeaseSpec
		among []*election.Candidate
		ask   []string
		wants *coordinationv1.LeaseSpec
		due   time.Duration // from now; a millisecond later where something ends; 0: never
		err   string
	}{
		"nobody":                                   {lease: lease("a", 100)},
		"one that just came, without a lease":      {among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1)}, wants: term("a"), due: 5 * time.Second},
		"one that came long ago is asked":          {among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 60)}, ask: []string{"a"}, due: 5 * time.Second},
		"one that answered before is asked again":  {among: []*election.Candidate{member("a 1.31.0 1.32.0", 62, 60)}, ask: []string{"a"}, due: 5 * time.Second},
		"one that was asked has time":              {among: []*election.Candidate{member("a 1.31.0 1.32.0", 2, 60), member("b 1.32.0 1.32.0", 0, 1)}, due: 3 * time.Second},
		"one that is silent is not asked again":    {among: []*election.Candidate{member("a 1.31.0 1.32.0", 9, 60)}},
		"one that is silent does not lead":         {among: []*election.Candidate{member("a 1.31.0 1.32.0", 9, 60), member("b 1.32.0 1.32.0", 0, 1)}, wants: term("b"), due: 5 * time.Second},
		"who answered waits for those who do not":  {among: []*election.Candidate{member("a 1.31.0 1.32.0", 5, 60), member("b 1.32.0 1.32.0", 5, 4.99), member("c 1.32.0 1.32.0", 5, 5)}, wants: term("b"), due: 5 * time.Second},
		"one that did not renew itself is none":    {among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1801), member("b 1.32.0 1.32.0", 0, 0)}},
		"a question of the future is asked again":  {among: []*election.Candidate{member("a 1.31.0 1.32.0", -3600, 60)}, ask: []string{"a"}, due: 5 * time.Second},
		"a question of a clock that is ahead":      {among: []*election.Candidate{member("a 1.31.0 1.32.0", -1, 60)}, due: 6 * time.Second},
		"the oldest emulation version":             {among: []*election.Candidate{member("a 1.32.0 1.32.0", 0, 1), member("b 1.31.0 1.33.0", 0, 1)}, wants: term("b"), due: 5 * time.Second},
		"the oldest of them by number":             {among: []*election.Candidate{member("a 1.10.0 1.32.0", 0, 1), member("b 1.9.0 1.33.0", 0, 1)}, wants: term("b"), due: 5 * time.Second},
		"then the oldest binary version":           {among: []*election.Candidate{member("a 1.31.0 1.33.0", 0, 1), member("b 1.31.0 1.32.0", 0, 1)}, wants: term("b"), due: 5 * time.Second},
		"then who was there first":                 {among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1), member("b 1.31.0 1.32.0 first", 0, 1)}, wants: term("b"), due: 5 * time.Second},
		"then the name":                            {among: []*election.Candidate{member("b 1.31.0 1.32.0", 0, 1), member("a 1.31.0 1.32.0", 0, 1)}, wants: term("a"), due: 5 * time.Second},
		"the best leads":                           {lease: lease("a", 5), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 60), member("b 1.32.0 1.32.0", 0, 60)}, due: leaseEnd - 5*time.Second},
		"a better one came, and all are asked":     {lease: lease("b", 5), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1), member("b 1.32.0 1.32.0", 0, 60)}, ask: []string{"b"}, due: 5 * time.Second},
		"a better one is preferred":                {lease: lease("b", 5), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1), member("b 1.32.0 1.32.0", 2, 1)}, wants: lease("b", 5, prefers("a")), due: leaseEnd - 5*time.Second},
		"a better one is preferred to a stranger":  {lease: lease("x", 5), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1)}, wants: lease("x", 5, prefers("a")), due: leaseEnd - 5*time.Second},
		"one that is preferred is not again":       {lease: lease("b", 5, prefers("a")), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1), member("b 1.32.0 1.32.0", 0, 60)}, due: leaseEnd - 5*time.Second},
		"one better than who is preferred":         {lease: lease("b", 5, prefers("c")), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1)}, wants: lease("b", 5, prefers("a")), due: leaseEnd - 5*time.Second},
		"a leader that gave up":                    {lease: lease("", 1, prefers("a")), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1)}, wants: next("a"), due: 5 * time.Second},
		"a leader that is gone":                    {lease: lease("b", 16, prefers("a")), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1)}, wants: next("a"), due: 5 * time.Second},
		"a leader that renewed itself too late":    {lease: lease("a", 16), among: []*election.Candidate{member("a 1.31.0 1.32.0", 2, 1)}, wants: again("a"), due: 5 * time.Second},
		"... and says that it is of the future":    {lease: lease("a", 16), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, -7200)}, due: 2*time.Hour + refresh},
		"... gets one term":                        {among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, -7200)}, wants: term("a"), due: 5 * time.Second},
		"a lease without a time":                   {lease: &coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a")}, among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1)}, wants: term("a"), due: 5 * time.Second},
		"who has not renewed for long is asked":    {lease: lease("a", 1), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 60), member("b 1.32.0 1.32.0", 0, 901)}, ask: []string{"a", "b"}, due: 5 * time.Second},
		"... and the leader stays":                 {lease: lease("a", 1), among: []*election.Candidate{member("a 1.31.0 1.32.0", 2, 1), member("b 1.32.0 1.32.0", 6, 901)}, due: leaseEnd - time.Second},
		"a strategy of others makes a lease":       {among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1, theirs)}, wants: &coordinationv1.LeaseSpec{Strategy: ptr.To[coordinationv1.CoordinatedLeaseStrategy](theirs), RenewTime: &metav1.MicroTime{Time: now}, LeaseDurationSeconds: ptr.To[int32](5)}, due: refresh - time.Second},
		"... and chooses nobody":                   {lease: lease("", 100, by(theirs)), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1, theirs)}, due: refresh - time.Second},
		"... and is said where the lease has none": {lease: lease("", 100), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1, theirs)}, wants: lease("", 100, by(theirs)), due: refresh - time.Second},
		"... and leaves a leader alone":            {lease: lease("x", 1), among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1, theirs)}, due: leaseEnd - time.Second},
		"the newest program chooses the strategy":  {among: []*election.Candidate{member("a 1.31.0 1.31.0", 0, 1, theirs), member("b 1.31.0 1.32.0", 0, 1, oldest)}, wants: term("a"), due: 5 * time.Second},
		"the newest programs disagree": {
			among: []*election.Candidate{member("a 1.31.0 1.32.0", 0, 1, theirs), member("b 1.31.0 1.32.0", 0, 1)},
			err:   `candidates "a" and "b" have the same binary version and different strategies, example.com/mine and OldestEmulationVersion`, due: refresh - time.Second,
		},
		"they disagree while somebody leads": {
			lease: lease("x", 1), among: []*election.Candidate{member("b 1.31.0 1.32.0", 0, 1), member("a 1.31.0 1.32.0", 0, 1, theirs)},
			err: `candidates "b" and "a" have the same binary version and different strategies, OldestEmulationVersion and example.com/mine`,
		},
		"one of them is silent":                  {among: []*election.Candidate{member("a 1.31.0 1.32.0", 9, 60, theirs), member("b 1.31.0 1.32.0", 0, 1)}, wants: term("b"), due: 5 * time.Second},
		"one without a version is not the best":  {among: []*election.Candidate{member("a x 1.31.0", 0, 1, theirs), member("b 1.31.0 1.32.0", 0, 1)}, wants: term("b"), due: 5 * time.Second},
		"one with a version that is too long":    {among: []*election.Candidate{member("a 1.31.0 1.32.0-"+strings.Repeat("a.", 200)+"a", 0, 1)}, err: "no candidate says of which versions it is", due: refresh - time.Second},
		"one without a version leads by no rule": {among: []*election.Candidate{member("a x 1.32.0", 0, 1)}, err: "no candidate says of which versions it is", due: refresh - time.Second},
	} {
		step, err := election.Decide(test.lease, test.among, now, 5*time.Second)
		var asked []string
		for _, c := range step.Ping {
			asked = append(asked, c.Name)
		}
		if !slices.Equal(asked, test.ask) {
			t.Errorf("%s: %v are asked, want %v", name, asked, test.ask)
		}
		if d := cmp.Diff(test.wants, step.Lease); d != "" {
			t.Errorf("%s: the lease: %s", name, d)
		}
		var due time.Duration
		if !step.Due.IsZero() {
			due = step.Due.Sub(now).Truncate(10 * time.Millisecond)
		}
		if due != test.due {
			t.Errorf("%s: due in %v, want %v", name, due, test.due)
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != test.err {
			t.Errorf("%s: %q, want %q", name, text, test.err)
		}
	}
}

// However long candidates that never write are decided on, they are asked once.
func TestQuestionsEnd(t *testing.T) {
	spec := coordinationv1beta1.LeaseCandidateSpec{EmulationVersion: "1.31.0", BinaryVersion: "1.32.0", RenewTime: at(-60), Strategy: coordinationv1.OldestEmulationVersion}
	questions, writes := 0, 0
	var held *coordinationv1.LeaseSpec
	for second := range 3600 {
		then := now.Add(time.Duration(second) * time.Second)
		step, err := election.Decide(held, []*election.Candidate{election.Read("a", 1, metav1.NewTime(now), &spec)}, then, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(step.Ping) > 0 {
			questions++
			spec.PingTime = &metav1.MicroTime{Time: then}
		}
		if step.Lease != nil {
			writes++
			held = step.Lease
		}
		if second == 10 { // it comes to life once
			spec.RenewTime = &metav1.MicroTime{Time: then}
		}
	}
	if questions != 2 || writes < 1 || writes > 2 {
		t.Errorf("%d questions and %d writes of the lease", questions, writes)
	}
}
