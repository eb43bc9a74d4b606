//go:build !linux

package yield

func awaitPoll() {}
