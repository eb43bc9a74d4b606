package admission_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// texts are the sizes of objects.
type texts []int

func (l texts) List(ctx context.Context, _, _ string, may func([]byte) bool) (list []kinds.Object, err error) {
	for _, n := range l {
		if err := ctx.Err(); err != nil {
			return list, err
		}
		if may(make([]byte, n)) {
			list = append(list, &corev1.LimitRange{})
		}
	}
	return list, nil
}

// TestListAll: objects are listed up to two megabytes of text, and then not read any further.
func TestListAll(t *testing.T) {
	small := func(text []byte) bool { return len(text) < 100 }
	for name, c := range map[string]struct {
		texts
		may  func([]byte) bool
		want int // -1: refused
	}{
		"none":          {nil, nil, 0},
		"some":          {texts{1000, 1 << 20, 1 << 19}, nil, 3},
		"just":          {texts{1 << 20, 1 << 20}, nil, 2},
		"too many":      {texts{1 << 20, 1 << 20, 1}, nil, -1},
		"too large":     {texts{4 << 20}, nil, -1},
		"others":        {texts{4 << 20, 10, 4 << 20, 20}, small, 2},
		"without limit": {make(texts, 10_000), small, 10_000},
	} {
		reads := 0
		list, err := admission.ListAll(t.Context(), counting{c.texts, &reads}, "limitranges", "a", c.may)
		switch {
		case c.want < 0 && (!apierrors.IsRequestEntityTooLargeError(err) || list != nil || reads > 3):
			t.Errorf("%s: %d objects after %d reads, %v", name, len(list), reads, err)
		case c.want >= 0 && (err != nil || len(list) != c.want):
			t.Errorf("%s: %d objects, %v", name, len(list), err)
		}
	}
}

// counting counts the texts that are read.
type counting struct {
	texts
	reads *int
}

func (c counting) List(ctx context.Context, storage, namespace string, may func([]byte) bool) ([]kinds.Object, error) {
	return c.texts.List(ctx, storage, namespace, func(text []byte) bool {
		*c.reads++
		return may(text)
	})
}
