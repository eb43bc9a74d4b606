package main

import (
	"errors"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0:05.12": 5120 * time.Millisecond, "00:01:07": 67 * time.Second, "2-03:00:01": 51*time.Hour + time.Second, "": 0,
	} {
		if got := clock(text).Round(time.Millisecond); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestRollup(t *testing.T) {
	m, err := rollup([]byte("00400000-7ffd rw-p 0 00:00 0 [rollup]\nRss: 2048 kB\nPss: 1536 kB\nPss_Dirty: 9 kB\nPss_Anon: 1024 kB\nPss_File: 512 kB\nPss_Shmem: 0 kB\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (memory{rss: 2, pss: 1.5, anonymous: 1, file: 0.5}); m != want {
		t.Errorf("%+v, want %+v", m, want)
	}
	if _, err := rollup([]byte("Rss: 2048 kB\nPss: 1 kB\n")); err == nil {
		t.Error("a rollup without the kinds of memory was taken")
	}
}

func TestSteady(t *testing.T) {
	clients := make([]*client, 4)
	r, err := steady(clients, 200, until(300*time.Millisecond), func(_ *client, _, i int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if r.rate > 250 { // a busy machine may be slower, none is to be faster
		t.Errorf("%.0f calls a second where 200 were due", r.rate)
	}
	broken := errors.New("broken")
	if _, err := steady(clients, 200, until(time.Minute), func(*client, int, int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
