package rules_test

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// TestDifferenceOfManyLines: few lines are compared one by one, many are not, however short they are.
func TestDifferenceOfManyLines(t *testing.T) {
	monitors := func(n, step int) corev1.RBDPersistentVolumeSource {
		var s corev1.RBDPersistentVolumeSource
		for i := range n {
			s.CephMonitors = append(s.CephMonitors, strconv.Itoa(i*step%89))
		}
		return s
	}
	for n, lines := range map[int]bool{10: true, 400: true, 1000: false, 3000: false} {
		got := rules.DifferenceSince133(monitors(n, 1), monitors(n, 7))
		if strings.HasPrefix(got, "@@") != lines {
			t.Errorf("%d lines: %.100s", n, got)
		}
	}
}
