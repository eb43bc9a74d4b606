// Package webpage writes the history of objects as one HTML page: timelines, the differences between any two
// revisions, and the writers. The page loads nothing, and everything in it is escaped. Its size is bounded; a
// note names what was omitted.
package webpage

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/display"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

var (
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// Bounds of a page.
const (
	maxObjects = 500
	maxText    = 32 << 20 // bytes of YAML
)

// Config configures a page.
type Config struct {
	Now     time.Time // its zone is that of the page
	Form    *display.Form
	Server  string
	Version string
}

// Page is a page that is being made.
type Page struct {
	config  Config
	objects []object
	notes   []string
	text    int
	writes  int
}

type object struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Revisions []row  `json:"revisions"`
	More      bool   `json:"more"`
}

type row struct {
	Revision string    `json:"revision"`
	At       time.Time `json:"at"`
	When     string    `json:"when"`
	Change   string    `json:"change"`
	Class    string    `json:"-"`
	By       string    `json:"by"`
	Fields   string    `json:"fields"`
	Text     string    `json:"text"`
}

// New returns an empty page.
func New(config Config) *Page { return &Page{config: config} }

// Collect fills the page: with the objects that are named, or with all of the types that
// are, or with all that the namespace has.
func (p *Page) Collect(ctx context.Context, c *cluster.Client, all *cluster.Resources, names cluster.Names, q revisions.Query) error {
	targets, err := names.Targets(all, c.Namespace)
	if err != nil {
		return err
	}
	named := len(targets) > 0
	if !named {
		if targets, err = p.find(ctx, c, all, names, q); err != nil {
			return err
		}
	}
	for i, t := range targets {
		if len(p.objects) == maxObjects || p.text > maxText {
			p.note("%d objects are left out: a page holds %d objects and %d MiB of text.", len(targets)-i, maxObjects, maxText>>20)
			break
		}
		if err := p.add(ctx, c, t, q, named); err != nil {
			return err
		}
	}
	if len(p.objects) == 0 {
		return fmt.Errorf("no states of these objects are kept, now or in the past")
	}
	return nil
}

// add collects one object. Unless it was named, it is omitted if the user may not see it.
func (p *Page) add(ctx context.Context, c *cluster.Client, t cluster.Target, q revisions.Query, named bool) error {
	o := object{Name: t.String(), Namespace: t.Namespace}
	q.PageSize = 25 // with objects, pages are large
	more, err := revisions.List(ctx, c, t, q, func(r *revisions.Revision) (bool, error) {
		if p.text > maxText {
			return false, nil
		}
		row, err := p.row(r)
		o.Revisions = append(o.Revisions, row)
		p.text += len(row.Text)
		return true, err
	})
	if err != nil && (named || !revisions.Denied(err)) {
		return err
	}
	if err != nil {
		p.note("%s is left out: %v", t.Where(), err)
		return nil
	}
	o.More = more
	if len(o.Revisions) > 0 {
		p.objects = append(p.objects, o)
		p.writes += len(o.Revisions)
	} else if named {
		p.note("Nothing is known of %s.", t.Where())
	}
	return nil
}

func (p *Page) row(r *revisions.Revision) (row, error) {
	at := r.WrittenAt.In(p.config.Now.Location())
	by := strings.Join(r.By(), ", ")
	if r.User != "" {
		by = strings.TrimSpace(by + " (" + r.User + ")")
	}
	made := row{
		Revision: r.Revision, At: at, When: at.Format("2006-01-02 15:04:05"), Change: r.Change, Class: "update",
		By: by, Fields: strings.Join(r.ChangedFields, ", "),
	}
	if slices.Contains([]string{"create", "delete"}, r.Change) {
		made.Class = r.Change
	}
	if r.Deleted() || r.Content == nil {
		return made, nil // nothing is there any more, or nothing that can be read
	}
	obj, err := r.Decoded()
	if err != nil {
		return made, err
	}
	made.Text, err = p.config.Form.YAML(obj)
	return made, err
}

func (p *Page) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// Summary describes the content of the page.
func (p *Page) Summary() string {
	text := fmt.Sprintf("%d objects, %d writes.", len(p.objects), p.writes)
	if len(p.notes) > 0 {
		text += " " + strings.Join(p.notes, " ")
	}
	return text
}
