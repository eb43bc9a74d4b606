package main

import (
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
)

// scaleMemory measures the memory of the server after a start and before the first request, as the kernel counts it.
func scaleMemory(s *scaled) error {
	m, err := calm(s.server.Pid())
	if err != nil {
		return err
	}
	s.held("after a start", m)
	if err := profile(s.server, time.Second)(); err != nil {
		return err
	}
	if s.pg == nil {
		return nil
	}
	for _, pid := range behind(s.server.Port) {
		if pid == s.server.Pid() {
			continue
		}
		db, err := memoryOfAll(pid)
		if err != nil {
			return err
		}
		s.figure(record.Of("memory", "the database's processes", "MB", record.Lower, db.pss))
	}
	return nil
}

// held records the memory of a server, absolute, in proportion to the stored bytes, and for each object.
func (s *scaled) held(when string, m memory) {
	s.report("memory "+when, "%v", m)
	f := record.Of("memory", when+", by stored bytes", "times", record.Lower, m.rss/s.stored)
	f.Goal = 0.12
	s.figure(f)
	s.figure(record.Of("memory", when+", resident", "MB", record.Lower, m.rss))
	s.figure(record.Of("memory", when+", anonymous", "MB", record.Lower, m.anonymous))
	s.figure(record.Of("memory", when+", files", "MB", record.Lower, m.file))
	f = record.Of("memory", when+", an object beside its value", "B", record.Lower, (m.anonymous-s.bare.anonymous-s.stored)*(1<<20)/float64(s.shape.Objects()))
	f.Goal = 250
	s.figure(f)
}
