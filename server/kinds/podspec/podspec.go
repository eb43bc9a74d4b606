// Package podspec holds the rules of pod templates: how a PodSpec is defaulted,
// which of its fields are served, and what makes it valid. Pods and every
// workload kind share it.
//
// It promises: defaulting is idempotent; functions change only the object they
// are given, keep no reference to it, and never panic, whatever a client sent.
// Errors and warnings have the paths, order and words of release 1.32.
package podspec
