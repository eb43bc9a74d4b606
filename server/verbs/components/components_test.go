package components

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func fixed(name, message string, err error) Component {
	return Component{Name: name, Probe: func(context.Context) (string, error) { return message, err }}
}

func TestAskAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Component{Name: "slow", Probe: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		start := time.Now()
		list := askAll(t.Context(), []Component{slow, fixed("good", "ok", nil), slow, fixed("bad", "", errors.New("no"))})
		if took := time.Since(start); took != timeout {
			t.Errorf("components were not asked together: %v", took)
		}
		for i, want := range []struct {
			status  corev1.ConditionStatus
			message string
		}{
			{corev1.ConditionFalse, "context deadline exceeded"}, {corev1.ConditionTrue, "ok"},
			{corev1.ConditionFalse, "context deadline exceeded"}, {corev1.ConditionFalse, "no"},
		} {
			if c := list[i].Conditions[0]; c.Type != corev1.ComponentHealthy || c.Status != want.status || c.Message != want.message {
				t.Errorf("%s: %+v", list[i].Name, c)
			}
		}
	})
}

func TestSelected(t *testing.T) {
	all := []Component{fixed("a", "", nil), fixed("b", "", nil)}
	for query, want := range map[string]int{
		"": 2, "fieldSelector=metadata.name%3Db": 1, "labelSelector=x": 0, "labelSelector=!x": 2,
		"fieldSelector=spec.x%3D1": -1, "labelSelector=%3D%3D": -1,
	} {
		got, err := selected(httptest.NewRequest("GET", "/?"+query, nil), all)
		if (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%s: %d, %v", query, len(got), err)
		}
	}
}
