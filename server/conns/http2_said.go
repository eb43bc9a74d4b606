package conns

import (
	"encoding/binary"
	"slices"
)

// wakeUp returns what a new session has to know first.
func (f *flowControl) wakeUp() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rests, f.pending = false, true // more of the window than it begins with
	f.makeMaps()
	greeting := []byte{0, 0, byte(len(f.said) * settingSize), settingsFrame, 0, 0, 0, 0, 0}
	for _, s := range f.said {
		greeting = binary.BigEndian.AppendUint16(greeting, s.id)
		greeting = binary.BigEndian.AppendUint32(greeting, s.value)
	}
	return greeting
}

// saidMax is the last of the settings that are remembered: there is none behind it that package http2 knows.
const saidMax = 16

// Settings that are looked at, and how long one is.
const (
	tableSize   = 1
	windowSize  = 4
	settingSize = 6
)

// setting is one of a client's.
type setting struct {
	id    uint16
	value uint32
}

// remember notes a setting, of which the last one counts. Of the size of the client's table of headers the
// least does: who has made it smaller has to hear of that with the next headers, also if it has made it larger
// since, and a session that comes then says so, and that it takes no more. The caller holds f.mu.
func (f *flowControl) remember(id uint16, value uint32) {
	if id > saidMax {
		return
	}
	i := slices.IndexFunc(f.said, func(s setting) bool { return s.id == id })
	switch {
	case i < 0:
		f.said = append(f.said, setting{id, value})
	case id != tableSize || value < f.said[i].value:
		f.said[i].value = value
	}
}

// unsaid is what a session begins with that the client has heard of an earlier one.
type unsaid struct {
	settings, update bool // of the window for bodies
	ack              bool // of the settings in its greeting
	pong             bool // the answer to a ping of settle, in whichever session
}

func (u *unsaid) any() bool { return u.settings || u.update || u.ack || u.pong }

// of says that a frame is a part of it.
func (u *unsaid) of(h *head) bool {
	switch h.kind() {
	case settingsFrame:
		return h.has(ack) && u.ack || !h.has(ack) && u.settings
	case updateFrame:
		return u.update && h.stream() == 0
	case pingFrame:
		return u.pong && h.has(ack)
	}
	return false
}

// take notes that a frame was written, and says whether it is a part.
func (u *unsaid) take(h *head) bool {
	if !u.of(h) {
		return false
	}
	switch {
	case h.kind() == updateFrame:
		u.update = false
	case h.kind() == pingFrame:
		u.pong = false
	case h.has(ack):
		u.ack = false
	default:
		u.settings = false
	}
	return true
}
