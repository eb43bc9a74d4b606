// Package attack attacks the built binary, and measures what each attack costs another client, the probe, which updates and
// reads a lease every 40 ms. SECURITY.md lists the bound and the test of each attack.
//
// Every attack has a bound that its test counts: answers, frames, bytes, processor time, goroutines, descriptors, refused
// requests of the probe. The test logs the latency of the probe, and fails if one of its requests takes a minute.
package attack
