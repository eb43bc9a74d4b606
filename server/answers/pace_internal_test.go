package answers

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/request"
)

// TestPaced: short answers wait for nobody; long ones take turns, give them back, and end
// with the request.
func TestPaced(t *testing.T) {
	line := budget.NewLine(2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := &Answers{Line: line}
	scope := &request.Scope{}
	writer := func(buf *bytes.Buffer) *paced {
		return &paced{buf, Pace{line: a.Line, ctx: ctx, scope: scope, left: unpaced}}
	}
	var long, short bytes.Buffer
	w := writer(&long)
	piece := make([]byte, Chunk)
	for range 100 {
		if n, err := w.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if w.place == (budget.Place{}) || !scope.Long || long.Len() != 100*len(piece) {
		t.Errorf("%d bytes were written, with a turn: %t; long: %t", long.Len(), w.place != budget.Place{}, scope.Long)
	}
	w.End()
	if w.place != (budget.Place{}) {
		t.Error("the turn is kept")
	}
	var all []budget.Place
	for range 1000 { // more than there are processors, until somebody has to wait
		soon, end := context.WithTimeout(ctx, time.Millisecond)
		place, err := line.Enter(soon, "a")
		end()
		if err != nil {
			break
		}
		all = append(all, place)
	}
	if len(all) == 1000 {
		t.Fatal("nobody waits")
	}
	scope.Long = false
	if n, err := writer(&short).Write(make([]byte, unpaced)); n != unpaced || err != nil || scope.Long {
		t.Errorf("a short answer waited: %d %v", n, err)
	}
	cancel()
	for i := range all {
		all[i].Leave()
	}
}
