package pack

// Sign ends a text that a test has made as PackRows ends its own.
func (p *Pack) Sign() { p.sign() }
