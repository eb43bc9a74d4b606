package request

// outliving is the work that is left for an answer that goes on without its handler.
type outliving struct {
	begin func(panicked any)
	ends  []func() // of the filters, the innermost first
}

// MayOutlive is called by the outermost filter, which calls Returned. Filters of others, which do
// not know of AtEnd, have MustStay called.
func (s *Scope) MayOutlive() { s.outlivable = true }

// MustStay has the handler stay until the answer has ended.
func (s *Scope) MustStay() { s.outlivable = false }

// Outlivable says whether Outlive may be called, once.
func (s *Scope) Outlivable() bool { return s.outlivable && s.outlived == nil }

// Outlive has the answer go on after the handler, and all filters, have returned: then
// begin is called, with what one of them has panicked with, or nil. Until then nobody but
// the handler's goroutine has to do with the request, and afterwards begin's. Whoever goes
// on with the answer must call Ended, once. The header has been sent: nothing is added to it.
func (s *Scope) Outlive(begin func(panicked any)) {
	s.outlived, s.header = &outliving{begin: begin}, nil
}

// Outlives says that the answer goes on although the handler has returned. A filter then
// gives to AtEnd what it does once the answer has ended.
func (s *Scope) Outlives() bool { return s.outlived != nil }

// AtEnd has a function called by Ended, as those that are deferred are called by a handler
// that returns: behind those of the filters further inside. It may panic, for those of the
// filters around it.
func (s *Scope) AtEnd(end func()) { s.outlived.ends = append(s.outlived.ends, end) }

// Returned says that all filters have returned.
func (s *Scope) Returned(panicked any) {
	begin := s.outlived.begin
	s.outlived.begin = nil
	begin(panicked)
}

// Panicked is what the answer ended with, for functions of AtEnd; nil: not with a panic.
func (s *Scope) Panicked() any { return s.panicked }

// Ended says that the answer has ended, with what its goroutine has panicked with, or nil.
// It returns what the last of the filters' functions that did so panicked with, or else
// that.
func (s *Scope) Ended(panicked any) any {
	ends := s.outlived.ends
	s.outlived.ends = nil
	s.panicked = panicked
	for _, end := range ends {
		s.call(end)
	}
	return s.panicked
}

// call calls one function. A panic costs none of the others.
func (s *Scope) call(end func()) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked = p
		}
	}()
	end()
}
