// Package podspec holds the rules of pod templates: how a PodSpec is defaulted,
// which of its fields are served, and how it is validated. Pods and all workload kinds share it.
//
// It promises: defaulting is idempotent; functions change only the object that they get,
// keep no reference to it, and never panic, whatever a client sent.
// Errors and warnings have the paths, order and texts of release 1.32.
package podspec
