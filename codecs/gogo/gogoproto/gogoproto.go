// Package gogoproto is there for generated files that name it. They use nothing of it: its options
// are for the generator.
package gogoproto
