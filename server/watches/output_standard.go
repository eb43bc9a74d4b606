package watches

import (
	"bufio"
	"net/http"
	"sync"
	"time"
)

// standardOutput writes to the request's http.ResponseWriter. A flush sends all frames that are pending in one write.
type standardOutput struct {
	w           http.ResponseWriter
	control     *http.ResponseController
	pending     *bufio.Writer // to the standardOutput itself; nil: there are no frames
	http2       bool
	deadlineSet time.Time // when the write deadline was; zero: there is none
}

func newStandardOutput(w http.ResponseWriter, r *http.Request) *standardOutput {
	return &standardOutput{w: w, control: http.NewResponseController(w), http2: r.ProtoMajor == 2}
}

var pendings = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, chunkSize) }}

func (o *standardOutput) send(frame []byte) error {
	if o.pending == nil {
		o.pending = pendings.Get().(*bufio.Writer)
		o.pending.Reset(o)
	}
	if _, err := o.pending.Write(frame); err != nil {
		return errGone
	}
	return nil
}

// Write implements io.Writer, within writeTimeout.
func (o *standardOutput) Write(data []byte) (int, error) {
	o.beginWrite()
	return o.w.Write(data)
}

func (o *standardOutput) flush() (err error) {
	o.beginWrite()
	if o.pending != nil {
		err = o.pending.Flush()
	}
	if err == nil {
		err = o.control.Flush()
	}
	o.close(false)
	if err != nil {
		return errGone
	}
	return nil
}

// beginWrite bounds how long a write may take.
func (o *standardOutput) beginWrite() {
	if now := time.Now(); now.Sub(o.deadlineSet) > writeTimeout/4 {
		_ = o.control.SetWriteDeadline(now.Add(writeTimeout)) // only writers of tests have no deadlines
		o.deadlineSet = now
	}
}

func (o *standardOutput) blocked() bool      { return false }
func (o *standardOutput) postpones(int) bool { return false }
func (o *standardOutput) splits() bool       { return true }

// close drops the pending frames. Over HTTP/2 it also clears the write deadline, which would end an idle stream.
func (o *standardOutput) close(bool) {
	if o.pending != nil {
		o.pending.Reset(nil)
		pendings.Put(o.pending)
		o.pending = nil
	}
	if o.http2 && !o.deadlineSet.IsZero() {
		_ = o.control.SetWriteDeadline(time.Time{})
		o.deadlineSet = time.Time{}
	}
}
