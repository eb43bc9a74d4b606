//go:build linux

package sqlite

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLooksAreRareAlone: a process that has the file alone wakes seldom, and at the configured interval
// once it is not alone, or has pages to give back.
func TestLooksAreRareAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	open := func() *Driver {
		d, err := Open(t.Context(), path, Config{Unsynced: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	first := open()
	if wait := first.untilNext(); wait != aloneInterval {
		t.Errorf("alone: %v", wait)
	}
	first.spare.Store(true)
	if wait := first.untilNext(); wait != first.cfg.PollInterval {
		t.Errorf("with pages to give back: %v", wait)
	}
	first.spare.Store(false)
	second := open()
	first.lock.refresh()
	for _, d := range []*Driver{first, second} {
		if wait := d.untilNext(); wait != d.cfg.PollInterval {
			t.Errorf("beside another one: %v", wait)
		}
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	first.lock.refresh()
	if wait := first.untilNext(); wait != aloneInterval {
		t.Errorf("alone again: %v", wait)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	first.lock.refresh()
	if wait := first.untilNext(); wait != first.cfg.PollInterval {
		t.Errorf("where other processes do not find this one: %v", wait)
	}
}
