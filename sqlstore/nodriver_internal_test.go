package sqlstore

// noDriver is what drivers of tests embed that have a few methods alone: those that a Store calls by itself are there.
type noDriver struct{ Driver }

func (noDriver) Healthy() error           { return nil }
func (noDriver) Returned() int64          { return 0 }
func (noDriver) Noticed() <-chan struct{} { return nil }
