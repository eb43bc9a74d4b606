package postgres

// SetFar makes snapshots deeper than depth be read key by key.
func (d *Driver) SetFar(depth int64) { d.far = depth }
