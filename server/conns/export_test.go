package conns

import "time"

// SetTokenPatience makes a Delivery wait for less than tokenPatience.
func (d *Delivery) SetTokenPatience(patience time.Duration) { d.tokenPatience = patience }

// SetPatience makes a client that has no window for a token go sooner.
func (d *Delivery) SetPatience(patience time.Duration) { d.patience = patience }
