package remote

import (
	"fmt"
	"io"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/progress"
)

// ShowProgress shows the progress of reading a live cluster: the number of objects, their total as far as the
// server reports it, and the current resource.
func ShowProgress(w io.Writer, host string) (*progress.Line, func(Progress)) {
	p := progress.New(w, "reading "+host, "objects")
	place := 0
	return p, func(at Progress) {
		if at.Place != place {
			place = at.Place
			p.What(fmt.Sprintf("reading %s (%s, %d of %d resources)", host, Printable(at.Resource.String()), at.Place, at.Of))
		}
		switch {
		case at.Place == 0: // definitions: the number of resources is not known yet
			p.Show(at.Objects)
		case at.AtLeast:
			p.AtLeast(at.Total)
			p.Show(at.Objects)
		default:
			p.Of(at.Objects, at.Total)
		}
	}
}
