// Package attack attacks the built binary, and measures what each attack costs another client: a mouse, which renews a lease
// every 40 ms and reads. SECURITY.md says which attack is held by which bound and test.
//
// It promises: every attack has a bound that is counted (answers, frames, bytes, goroutines, descriptors, what the mouse is
// refused), and none that is a matter of speed. The latency of the mouse is printed.
package attack
