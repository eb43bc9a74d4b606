package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRootCABurst: however often a namespace changes while others are worked on, a failure there is one failure: its
// ConfigMap is not tried by several at once, and is not left alone the longer for it.
func TestRootCABurst(t *testing.T) {
	during(t, func(w *world) {
		w.refuse = func(method, path string) error {
			if method != http.MethodPost {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
			if strings.Contains(path, "/namespaces/a/") {
				return errors.New("exceeded quota")
			}
			return nil
		}
		w.set("namespaces", "", "other", `{}`)
		pass(time.Millisecond)
		for i := range 12 {
			w.set("namespaces", "", "a", fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i))
		}
		pass(500 * time.Millisecond)
		tries := 0
		for _, call := range w.took() {
			if strings.HasPrefix(call, "POST /api/v1/namespaces/a/") {
				tries++
			}
		}
		if tries != 1 {
			t.Errorf("tried %d times in half a second", tries)
		}
		w.refuse = nil
		pass(3 * time.Second)
		if w.read("configmaps", "a", rootCAMap) == "" {
			t.Error("the ConfigMap is not there")
		}
	}, func(w *world) func(context.Context) error {
		return (&RootCA{API: w, Cache: w.cache, Log: quiet, PEM: func() ([]byte, error) { return []byte("PEM"), nil }}).Run
	})
}
