package copying

import (
	"context"
	"iter"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// FromSpool returns a Source of collected objects.
func FromSpool(s *remote.Spool) Source { return spooled{s} }

type spooled struct{ *remote.Spool }

func (s spooled) Resources() (names []string) {
	for _, section := range s.Sections() {
		names = append(names, section.Resource.String())
	}
	return names
}

func (s spooled) Objects(ctx context.Context, resource string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, section := range s.Sections() {
			if section.Resource.String() != resource {
				continue
			}
			for data, err := range s.Raw(section) {
				if err == nil {
					err = ctx.Err()
				}
				if !yield(data, err) || err != nil {
					return
				}
			}
		}
	}
}
