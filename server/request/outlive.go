package request

// outliving is the remaining work for an answer that continues without its handler.
type outliving struct {
	begin func(panicked any)
	ends  []func() // of the filters, innermost first
}

// MayOutlive is called by the outermost filter, which also calls Returned. Filters that do not use AtEnd call
// MustStay.
func (s *Scope) MayOutlive() { s.outlivable = true }

// MustStay keeps the handler until the answer has ended.
func (s *Scope) MustStay() { s.outlivable = false }

// Outlivable reports whether Outlive may be called, once.
func (s *Scope) Outlivable() bool { return s.outlivable && s.outlived == nil }

// Outlive continues the answer after the handler and all filters have returned: then begin is called, with
// the value of a panic of one of them, or nil. Until then only the handler's goroutine uses the request, and
// afterwards only the goroutine of begin. The answer must call Ended, once, at its end. The header has been
// sent and cannot change.
func (s *Scope) Outlive(begin func(panicked any)) {
	s.outlived, s.header = &outliving{begin: begin}, nil
}

// Outlives reports whether the answer continues although the handler has returned. Filters then pass the work
// at the end of the answer to AtEnd.
func (s *Scope) Outlives() bool { return s.outlived != nil }

// AtEnd adds a function that Ended calls, in the order of deferred functions: after those of the filters
// further inside. It may panic, which the filters around it see.
func (s *Scope) AtEnd(end func()) { s.outlived.ends = append(s.outlived.ends, end) }

// Returned is called when all filters have returned.
func (s *Scope) Returned(panicked any) {
	begin := s.outlived.begin
	s.outlived.begin = nil
	begin(panicked)
}

// Panicked returns the value of the panic that ended the answer, for functions of AtEnd; nil: none.
func (s *Scope) Panicked() any { return s.panicked }

// Ended is called when the answer has ended, with the value of a panic of its goroutine, or nil. It returns
// the value of the last panic of the filters' functions, or of that.
func (s *Scope) Ended(panicked any) any {
	ends := s.outlived.ends
	s.outlived.ends = nil
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
