package conns

import "time"

// SetTokenPatience makes a Delivery wait for less than tokenPatience.
func (d *Delivery) SetTokenPatience(patience time.Duration) { d.tokenPatience = patience }
