// Package realworld has the built binary serve the custom resources of other projects: its test fetches their
// definitions and samples from their public Go modules, at fixed versions, and commits nothing of them. It has a build tag of
// its own, realworld, as it downloads some hundred megabytes; `make long` runs it.
package realworld
