package seats

// Leave ends an admitted request. Repeated calls do nothing.
func (s *Scheduler) Leave(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.in {
		return
	}
	r.in = false
	now, l := s.catchUp(), r.Level
	l.advance(now)
	if r.seated {
		s.stop(r, now)
		if r.usage != nil {
			r.usage.running--
		}
	} else if s.withdraw(r) {
		close(r.ready)
	}
	if r.Extra > 0 && r.ExtraFor > 0 && !r.exempt && !r.Failed {
		l.used += r.Extra
		s.keep(extra{now + r.ExtraFor, l, r.Extra})
	}
	r.Flow.Running--
	if r.usage != nil {
		s.close(r)
	}
	s.dispatch(l, now, false)
}

// close subtracts a request from its user's counts.
func (s *Scheduler) close(r *Request) {
	u := r.usage
	r.usage = nil
	u.bodies -= r.Size
	if s.isLarge(r) {
		s.large -= r.Size
	}
	if u.open--; u.open == 0 {
		delete(s.users, user{r.User, r.Class})
		if len(s.spare) < cap(s.spare) {
			s.spare = append(s.spare, u)
		}
	}
}
