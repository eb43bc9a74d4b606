// Package attack attacks the built binary, and measures what each attack costs another client: a mouse, which renews a lease
// every 40 ms and reads. SECURITY.md says which attack is held by which bound and test.
//
// Every attack has a bound that is counted: answers, frames, bytes, processor time, goroutines, descriptors, refused requests of
// the mouse. The latency of the mouse is printed; one request that takes a minute fails the test.
package attack
