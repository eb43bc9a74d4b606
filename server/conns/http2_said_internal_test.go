package conns

import "testing"

// TestSettingsBehindThePing: of settings that come before the ping of settle is answered nobody can tell
// whether an answer is to them or to those before it.
func TestSettingsBehindThePing(t *testing.T) {
	settings, answer := &head{3: settingsFrame}, &head{3: settingsFrame, 4: ack}
	var r rest
	r.asks(settings)
	if r.mixed || !r.heeds.Load() {
		t.Errorf("one: mixed %v, heeds %v", r.mixed, r.heeds.Load())
	}
	r.answered(answer)
	r.barred.Store(true)
	r.asks(settings)
	if !r.mixed || !r.heeds.Load() {
		t.Errorf("behind the ping: mixed %v, heeds %v", r.mixed, r.heeds.Load())
	}
	r.barred.Store(false)
	r.answered(answer) // maybe of those before the ping
	if !r.mixed || r.heeds.Load() {
		t.Errorf("after it: mixed %v, heeds %v", r.mixed, r.heeds.Load())
	}
}
