// Package podspec holds the rules of pod templates: the defaulting, the served fields and the validation of a
// PodSpec. Pods and all workload kinds share it.
//
// Defaulting is idempotent; functions change only the given object, keep no reference to it, and never panic,
// whatever a client sent. Errors and warnings have the paths, order and texts of release 1.32.
package podspec
