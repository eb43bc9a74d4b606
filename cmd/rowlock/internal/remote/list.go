package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Sink receives the objects of one list.
type Sink interface {
	Begin() error     // drop earlier items: the list begins, or begins again
	Put(Object) error // may keep nothing of it
}

// Listed describes a complete list.
type Listed struct {
	Version string // the one resource version that all of it is of
	Objects int64
	Begun   int // how often: 1, and once more for each time that it expired or broke off
}

const (
	// begins limits the restarts of a list.
	begins = 5
	// maxEmpty limits consecutive empty pages.
	maxEmpty = 10
)

// errMoved: the pages of a list are not of one resource version.
var errMoved = errors.New("pages of the list are of different resource versions")

// List reads all objects of a resource at one resource version, page by page. It starts again, five times in all,
// if the list expires (410), breaks off, or continues at another version. It holds one object in memory at a time.
func (c *Client) List(ctx context.Context, r Resource, sink Sink) (Listed, error) {
	for begun := 1; ; begun++ {
		if err := sink.Begin(); err != nil {
			return Listed{}, err
		}
		l := &list{c: c, r: r, sink: sink, seen: map[[16]byte]struct{}{}}
		err := l.all(ctx)
		if err == nil {
			return Listed{Version: l.version, Objects: l.objects, Begun: begun}, nil
		}
		again := Is(err, http.StatusGone) || errors.Is(err, errMoved) || broken(err)
		if ctx.Err() != nil || !again {
			return Listed{}, err
		}
		if begun == begins {
			return Listed{}, fmt.Errorf("begun %d times: %w", begins, err)
		}
	}
}

// list is one attempt to read a list.
type list struct {
	c       *Client
	r       Resource
	sink    Sink
	version string
	objects int64
	pages   int
	bytes   int64                 // of the objects
	seen    map[[16]byte]struct{} // digests of tokens: a server that gives one again would never end
}

func (l *list) all(ctx context.Context) error {
	next, empty := "", 0
	for {
		before := l.objects
		page, err := l.page(ctx, l.c.cfg.Page, next)
		if err != nil {
			return err
		}
		switch {
		case l.version == "":
			l.version = page.ResourceVersion
		case l.version != page.ResourceVersion:
			return fmt.Errorf("%s: %w", l.r.Path(""), errMoved)
		}
		if page.Continue == "" {
			return nil
		}
		if empty++; l.objects > before {
			empty = 0
		}
		digest := digestOf(page.Continue)
		if _, again := l.seen[digest]; again || empty > maxEmpty {
			return &BoundError{Path: l.r.Path(""), Bound: "the list does not end: the server gives pages that are empty, or the same continue token again"}
		}
		if l.pages++; l.pages >= l.c.cfg.Pages {
			return &BoundError{Path: l.r.Path(""), Bound: fmt.Sprintf("the list has more than %d pages", l.c.cfg.Pages)}
		}
		l.seen[digest] = struct{}{}
		next = page.Continue
	}
}

// digestOf returns a 16-byte digest of a text.
func digestOf(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:16])
}

// meta is the metadata of a list.
type meta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
	Remaining       *int64 `json:"remainingItemCount"` // after this page; nil: absent
}

// maxToken is the longest continue token in bytes: it becomes part of a URL.
const maxToken = 16 << 10

// maxCounted is the largest number of remaining objects that a server is believed.
const maxCounted = 1 << 40

// Count requests the number of objects of a resource, by a list of one of them. whole is false if the server does
// not report it: then there are more.
func (c *Client) Count(ctx context.Context, r Resource) (objects int64, whole bool, err error) {
	l := &list{c: c, r: r, sink: each(func(Object) error { return nil })}
	page, err := l.page(ctx, 1, "")
	switch {
	case err != nil:
		return 0, false, err
	case page.Continue == "":
		return l.objects, true, nil
	case page.Remaining == nil || *page.Remaining < 0 || *page.Remaining > maxCounted:
		return l.objects, false, nil
	}
	return l.objects + *page.Remaining, true, nil
}

// page reads one page as it arrives.
func (l *list) page(ctx context.Context, limit int, token string) (meta, error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	if token != "" {
		query.Set("continue", token)
	}
	path := l.r.Path("")
	a, err := l.c.open(ctx, Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return meta{}, err
	}
	defer a.Close()
	m, err := l.read(&budget{in: a, path: path, most: l.c.cfg.Object, left: l.c.cfg.Object})
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &typ) {
		err = &MalformedError{Path: path, What: "a list", Err: err}
	}
	if err == nil && (m.ResourceVersion == "" || len(m.Continue) > maxToken) {
		err = &MalformedError{Path: path, What: "the list has no resourceVersion, or a continue token that is too long"}
	}
	return m, err
}

// read parses a list. It skips unknown fields.
func (l *list) read(in *budget) (m meta, err error) {
	dec := json.NewDecoder(in)
	if err := l.delim(dec, '{'); err != nil {
		return m, err
	}
	for dec.More() {
		field, err := dec.Token()
		if err != nil {
			return m, err
		}
		var rest json.RawMessage
		switch field {
		case "metadata":
			err = dec.Decode(&m)
		case "kind":
			err = l.want(dec, l.r.Kind+"List")
		case "apiVersion":
			err = l.want(dec, l.r.APIVersion())
		case "items":
			err = l.items(dec, in)
		default:
			err = dec.Decode(&rest)
		}
		if err != nil {
			return m, err
		}
		in.left = in.most
	}
	if err := l.delim(dec, '}'); err != nil {
		return m, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = &MalformedError{Path: l.r.Path(""), What: "the list continues after its end"}
		}
		return m, err
	}
	return m, nil
}

func (l *list) delim(dec *json.Decoder, want json.Delim) error {
	got, err := dec.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err == nil && got != want {
		err = &MalformedError{Path: l.r.Path(""), What: fmt.Sprintf("%q is expected in a list, not %.40q", want.String(), fmt.Sprint(got))}
	}
	return err
}

func (l *list) want(dec *json.Decoder, want string) error {
	var got string
	if err := dec.Decode(&got); err != nil {
		return err
	}
	if got != want {
		return &MalformedError{Path: l.r.Path(""), What: fmt.Sprintf("%s is expected, not %s", want, Printable(got))}
	}
	return nil
}

func (l *list) items(dec *json.Decoder, in *budget) error {
	start, err := dec.Token()
	if err != nil || start == nil { // null: none
		return err
	}
	if start != json.Delim('[') {
		return &MalformedError{Path: l.r.Path(""), What: "the items are no list"}
	}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		in.left = in.most
		if l.bytes += int64(len(raw)); l.bytes > l.c.cfg.Total {
			return &BoundError{Path: l.r.Path(""), Bound: fmt.Sprintf("all objects together have more than %d bytes", l.c.cfg.Total)}
		}
		obj, err := item(l.r, raw)
		if err != nil {
			return err
		}
		if err := l.sink.Put(obj); err != nil {
			return err
		}
		l.objects++
	}
	return l.delim(dec, ']')
}

// budget bounds the bytes that are read until an object is complete, and so the bytes of an answer in memory.
type budget struct {
	in         io.Reader
	path       string
	most, left int64
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &BoundError{Path: b.path, Bound: fmt.Sprintf("an object has more than %d bytes", b.most)}
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.in.Read(p)
	b.left -= int64(n)
	return n, err
}
