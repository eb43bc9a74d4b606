package sqlstore

// noDriver is embedded by drivers of tests that implement few methods: it implements those that a Store calls by itself.
type noDriver struct{ Driver }

func (noDriver) Healthy() error                 { return nil }
func (noDriver) RewindCount() int64             { return 0 }
func (noDriver) RewindNotices() <-chan struct{} { return nil }
