package answers

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/rowlock/rowlock/codecs/budget"
)

// TestPaced: short answers wait for nobody; long ones take turns, give them back, and end
// with the request.
func TestPaced(t *testing.T) {
	line := budget.NewLine()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := &Answers{Line: line}
	writer := func(buf *bytes.Buffer) *paced {
		return &paced{buf, Pace{line: a.Line, ctx: ctx, left: unpaced}}
	}
	var long, short bytes.Buffer
	w := writer(&long)
	piece := make([]byte, Chunk)
	for range 100 {
		if n, err := w.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if w.leave == nil || long.Len() != 100*len(piece) {
		t.Errorf("%d bytes were written, with a turn: %t", long.Len(), w.leave != nil)
	}
	w.End()
	if w.leave != nil {
		t.Error("the turn is kept")
	}
	var all []func()
	for range 1000 { // more than there are processors, until somebody has to wait
		soon, end := context.WithTimeout(ctx, time.Millisecond)
		leave, err := line.Enter(soon, "a")
		end()
		if err != nil {
			break
		}
		all = append(all, leave)
	}
	if len(all) == 1000 {
		t.Fatal("nobody waits")
	}
	if n, err := writer(&short).Write(make([]byte, unpaced)); n != unpaced || err != nil {
		t.Errorf("a short answer waited: %d %v", n, err)
	}
	cancel()
	for _, leave := range all {
		leave()
	}
}
