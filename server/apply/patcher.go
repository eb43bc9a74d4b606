package apply

import (
	"context"
	"log/slog"
	"reflect"
	"runtime/debug"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/apply/strategic"
)

// The ways that Config.Count is told of.
const (
	Own      = "own"
	Standard = "standard"
	Failed   = "failed" // a panic in our way, by which one more patch goes the standard way
)

// Config is what a Patcher is made of. The zero value is how it usually is.
type Config struct {
	// StandardOnly leaves strategic merges to the library, and patches whole objects.
	StandardOnly bool
	// Count is told of each strategic merge patch which way it took: Own or Standard; and of
	// each patch that Failed. It may be nil.
	Count func(way string)
	// Log is told of panics in our way. It may be nil.
	Log *slog.Logger
}

// StrategicMerger merges strategic merge patches. It changes both trees, which stand for
// structs of type t and have integers as int64. What it does it spends from a budget.
type StrategicMerger interface {
	Merge(b *budget.Budget, live, patch map[string]any, t reflect.Type) (map[string]any, error)
}

// Patcher applies patches. It is safe for concurrent use. A nil Patcher is one of the zero
// Config.
type Patcher struct {
	cfg    Config
	merger StrategicMerger
	failed sync.Map // reflect.Type of objects that made our way panic -> bool
}

// New makes a Patcher.
func New(cfg Config) *Patcher {
	if cfg.Count == nil {
		cfg.Count = func(string) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Patcher{cfg: cfg, merger: strategic.Own{}}
}

// Change makes the patched object, neither defaulted nor validated. kind is the
// kind that current is an object of, encoded its JSON form in that version; nil
// makes Change encode it. current is not changed. The warnings are unknown and
// duplicate fields under codecs.Warn; under codecs.Strict they are an error.
//
// Errors: 400 for a body that is no patch, 413 for too many operations, 422 for a
// patch that does not fit the object or makes it something else; plain errors for
// bad strategic directives, which a stock server answers with 500; 413 for more work than
// there is a budget for, and the error of ctx once that has ended.
func (p *Patcher) Change(ctx context.Context, patch *Patch, kind schema.GroupVersionKind, current runtime.Object, encoded []byte) (runtime.Object, []string, error) {
	if p == nil {
		p = New(Config{})
	}
	if patch.Type == codecs.PatchMerge || patch.Type == codecs.PatchStrategic {
		if out, warnings, err, ok := p.ownWay(ctx, patch, kind, current); ok {
			return out, warnings, err
		}
	}
	if patch.Type == codecs.PatchStrategic {
		p.cfg.Count(Standard)
		return patch.changeTree(ctx, strategic.Standard{}, kind, current)
	}
	return patch.changeDocument(ctx, kind, current, encoded)
}

// ownWay patches in place or, for strategic merge patches alone, as a whole with our merge.
// It reports false where it may not or cannot. Should it ever panic, all objects of that
// type are left to the standard way from then on.
func (p *Patcher) ownWay(ctx context.Context, patch *Patch, kind schema.GroupVersionKind, current runtime.Object) (out runtime.Object, warnings []string, err error, ok bool) {
	t := reflect.TypeOf(current)
	if _, failed := p.failed.Load(t); failed || p.cfg.StandardOnly {
		return nil, nil, nil, false
	}
	defer func() {
		if reason := recover(); reason != nil {
			ok = false
			p.failed.Store(t, true)
			p.cfg.Count(Failed)
			p.cfg.Log.Error("the quick way to patch failed; the standard one is taken for such objects from now on",
				"kind", kind.String(), "error", reason, "stack", string(debug.Stack()))
		}
	}()
	if out, ok = p.changeInPlace(ctx, patch, current); ok {
		out.GetObjectKind().SetGroupVersionKind(kind)
	}
	if patch.Type == codecs.PatchMerge {
		return out, nil, nil, ok
	}
	if !ok {
		out, warnings, err = patch.changeTree(ctx, p.merger, kind, current)
	}
	p.cfg.Count(Own)
	return out, warnings, err, true
}
