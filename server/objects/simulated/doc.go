// Package simulated runs the store, the cache, its watches, and the reads and lists of package objects in one process on
// fake time, against a database in memory whose driver fails. Each run follows from a seed.
//
//	simulated_test.go  seeds, runs and their steps; shrinking
//	world_test.go      the servers, faults, and requests
//	clients_test.go    clients, and the judgement of their answers and events
//	truth_test.go      the log of all commits, with which everything is compared
//	driver_test.go     the driver
//
// What makes a run the same each time: one goroutine takes the steps, and before each it waits until every other goroutine
// waits (synctest.Wait). The store's goroutines wait for the driver, whose calls the steps execute and answer one at a
// time, in an order of the calls' names and not of their arrival; or for a timer, and time passes only in a step. So
// at most one goroutine has something to do at any moment, or several that have nothing in common. Hints are sent only
// to a feed that waits. All chance comes from the seed, and is drawn before the run.
//
// It is not a second storetest: that tests a driver, with one server and without faults in the middle of a call; this tests
// the code above the contract of a driver, with the driver in memory.
package simulated
