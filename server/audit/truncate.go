package audit

import (
	"encoding/json"
	"fmt"
)

// truncated marks events whose bodies were left out.
const truncated = "audit.k8s.io/truncated"

// Truncate shortens events that are too large for a backend: it drops their bodies, and drops and counts an
// event that is still too large.
type Truncate struct {
	Sink
	Metrics  *Metrics
	MaxEvent int // bytes
	Report   func(error)
}

// Take implements Sink.
func (t *Truncate) Take(event []byte) error {
	if len(event) <= t.MaxEvent {
		return t.Sink.Take(event)
	}
	small, err := withoutBodies(event)
	if err == nil && len(small) > t.MaxEvent {
		err = fmt.Errorf("an audit event is too large even after truncating: %d bytes", len(small))
	}
	if err != nil {
		t.Metrics.Lost("truncate", 1)
		if t.Report != nil {
			t.Report(err)
		}
		return nil
	}
	return t.Sink.Take(small)
}

// withoutBodies removes the objects from an event and annotates it. It does not change an event without
// objects.
func withoutBodies(line []byte) ([]byte, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, fmt.Errorf("truncating an audit event: %w", err)
	}
	if e.Level != Request && e.Level != RequestResponse {
		return line, nil
	}
	e.RequestObject, e.ResponseObject = nil, nil
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[truncated] = "true"
	return json.Marshal(&e)
}

// parts cuts events into batches of at most limit bytes; a larger event is a batch of its own. 0: no limit.
func parts(events [][]byte, limit int) [][][]byte {
	if limit <= 0 {
		return [][][]byte{events}
	}
	var all [][][]byte
	start, size := 0, 0
	for i, e := range events {
		if size += len(e); size > limit && i > start {
			all = append(all, events[start:i])
			start, size = i, len(e)
		}
	}
	return append(all, events[start:])
}
