package budget_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs/budget"
)

func TestStepsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := budget.NewSteps("the write")
	if err := s.Spend(ctx, budget.Work); err != nil || s.Spent() != budget.Work {
		t.Errorf("all steps: %v, %d", err, s.Spent())
	}
	var refused apierrors.APIStatus
	if err := s.Spend(ctx, 1); !errors.As(err, &refused) || refused.Status().Code != http.StatusRequestEntityTooLarge ||
		refused.Status().Message != "Request entity too large: the write needs too much work" {
		t.Errorf("one more: %v", err)
	}
	var none *budget.Steps
	if err := none.Spend(ctx, 2*budget.Work); err != nil {
		t.Errorf("no steps to be taken from: %v", err)
	}
	cancel()
	fresh := budget.NewSteps("the write")
	for _, s := range []*budget.Steps{none, &fresh} {
		if err := s.Spend(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("after the client left: %v", err)
		}
	}
}
