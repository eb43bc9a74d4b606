//go:build !race

package verbs_test

const raced = false
