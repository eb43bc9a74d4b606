package watches

import (
	"net/http"
	"sync"
	"time"
)

// standardOutput writes to the request's http.ResponseWriter. One write sends all frames that are pending.
type standardOutput struct {
	w           http.ResponseWriter
	control     *http.ResponseController
	chunk       *[]byte   // collected frames; nil: none
	single      []byte    // a single frame, which needs no copy
	deadlineSet time.Time // when the write deadline was
	stalls      *stallTimer
}

func newStandardOutput(w http.ResponseWriter, r *http.Request) *standardOutput {
	o := &standardOutput{w: w, control: http.NewResponseController(w)}
	if r.ProtoMajor == 2 {
		o.stalls = &stallTimer{control: o.control}
	}
	return o
}

func (o *standardOutput) send(frame []byte) error {
	if len(frame) > chunkSize {
		if o.single != nil || o.chunk != nil && len(*o.chunk) > 0 {
			if err := o.write(true); err != nil {
				return err
			}
		}
		o.single = frame
		return o.write(true)
	}
	if o.single == nil && o.chunk == nil {
		o.single = frame
		return nil
	}
	if o.chunk == nil {
		o.chunk = getChunk()
		*o.chunk = append(*o.chunk, o.single...)
		o.single = nil
	}
	*o.chunk = append(*o.chunk, frame...)
	if len(*o.chunk) < chunkSize {
		return nil
	}
	return o.write(true)
}

func (o *standardOutput) flush() error       { return o.write(false) }
func (o *standardOutput) blocked() bool      { return false }
func (o *standardOutput) postpones(int) bool { return false }
func (o *standardOutput) splits() bool       { return true }

// write writes the collected frames. more means that the chunk is still needed.
func (o *standardOutput) write(more bool) error {
	data := o.single
	if data == nil && o.chunk != nil {
		data = *o.chunk
	}
	o.beginWrite()
	var err error
	if len(data) > 0 {
		_, err = o.w.Write(data)
	}
	if err == nil {
		err = o.control.Flush()
	}
	if o.stalls != nil {
		o.stalls.writeDone()
	}
	o.single = nil
	if o.chunk != nil {
		*o.chunk = (*o.chunk)[:0]
		if !more || err != nil {
			putChunk(o.chunk)
			o.chunk = nil
		}
	}
	if err != nil {
		return errGone
	}
	return nil
}

// beginWrite bounds how long a write may take.
func (o *standardOutput) beginWrite() {
	now := time.Now()
	if o.stalls != nil {
		o.stalls.writeBegins(now)
	} else if now.Sub(o.deadlineSet) > writeTimeout/4 {
		_ = o.control.SetWriteDeadline(now.Add(writeTimeout)) // only writers of tests have no deadlines
		o.deadlineSet = now
	}
}

func (o *standardOutput) close(bool) {
	if o.stalls != nil {
		o.stalls.stop()
	}
}

// stallTimer ends a stream of HTTP/2 whose client reads nothing. Write deadlines would not do: they also end streams that
// have nothing to write, and setting one for each write costs more than the write.
type stallTimer struct {
	control *http.ResponseController

	mu      sync.Mutex
	timer   *time.Timer
	running bool      // the timer will call check
	since   time.Time // when the write under way began; zero for none
	stopped bool
}

func (t *stallTimer) writeBegins(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = now
	switch {
	case t.timer == nil:
		t.timer = time.AfterFunc(writeTimeout, t.check)
	case !t.running:
		t.timer.Reset(writeTimeout)
	}
	t.running = true
}

func (t *stallTimer) writeDone() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = time.Time{}
}

func (t *stallTimer) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
	if t.stopped || t.since.IsZero() {
		return // the next write sets the timer again
	}
	if left := writeTimeout - time.Since(t.since); left > 0 {
		t.running = true
		t.timer.Reset(left)
		return
	}
	_ = t.control.SetWriteDeadline(time.Unix(1, 0)) // a time in the past ends the stream
}

func (t *stallTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
