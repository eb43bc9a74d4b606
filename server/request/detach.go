package request

// detached is the remaining work for an answer that continues without its handler.
type detached struct {
	begin func(panicked any)
	ends  []func() // of the filters, innermost first
}

// AllowDetach is called by the outermost filter, which also calls Returned. Filters that do not use AtEnd call
// ForbidDetach.
func (s *Scope) AllowDetach() { s.canDetach = true }

// ForbidDetach keeps the handler until the answer has ended.
func (s *Scope) ForbidDetach() { s.canDetach = false }

// CanDetach reports whether Detach may be called, once.
func (s *Scope) CanDetach() bool { return s.canDetach && s.detached == nil }

// Detach continues the answer after the handler and all filters have returned: then begin is called, with
// the value of a panic of one of them, or nil. Until then only the handler's goroutine uses the request, and
// afterwards only the goroutine of begin. The answer must call Ended, once, at its end. The header has been
// sent and cannot change.
func (s *Scope) Detach(begin func(panicked any)) {
	s.detached, s.header = &detached{begin: begin}, nil
}

// IsDetached reports whether the answer continues although the handler has returned. Filters then pass the work
// at the end of the answer to AtEnd.
func (s *Scope) IsDetached() bool { return s.detached != nil }

// AtEnd adds a function that Ended calls, in the order of deferred functions: after those of the filters
// further inside. It may panic, which the filters around it see.
func (s *Scope) AtEnd(end func()) { s.detached.ends = append(s.detached.ends, end) }

// OnEnd calls a function at the end of the answer: now, or as one of AtEnd if the answer is detached. It is deferred around the next
// handler.
func (s *Scope) OnEnd(end func()) {
	if s.IsDetached() {
		s.AtEnd(end)
		return
	}
	end()
}

// Returned is called when all filters have returned.
func (s *Scope) Returned(panicked any) {
	begin := s.detached.begin
	s.detached.begin = nil
	begin(panicked)
}

// Panicked returns the value of the panic that ended the answer, for functions of AtEnd; nil: none.
func (s *Scope) Panicked() any { return s.panicked }

// Ended is called when the answer has ended, with the value of a panic of its goroutine, or nil. It returns
// the value of the last panic of the filters' functions, or of that.
func (s *Scope) Ended(panicked any) any {
	ends := s.detached.ends
	s.detached.ends = nil
	s.panicked = panicked
	for _, end := range ends {
		s.call(end)
	}
	return s.panicked
}

// call calls one function. The others run even if it panics.
func (s *Scope) call(end func()) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked = p
		}
	}()
	end()
}
