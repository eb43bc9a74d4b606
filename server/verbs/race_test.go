//go:build race

package verbs_test

// raced: with the race detector, under which they take ten times as long, long tests in which
// one thing happens after the other do a part of what they do. The check runs them without it too.
const raced = true
